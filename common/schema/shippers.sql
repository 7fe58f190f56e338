-- Nodes that ship what they record (`sphase-collector node`). In cluster.db since version 4.
CREATE TABLE shipper (
  node TEXT NOT NULL,                   -- -; NodeName; meta.node of its node.db
  file_id TEXT NOT NULL,                -- -; meta.id of that node.db: another one after it was set aside
  change INTEGER NOT NULL,              -- 1; everything up to this run.change of that file is stored
  seen_ns INTEGER NOT NULL,             -- ns; last word of it; the collector's clock
  rows_deleted INTEGER,                 -- 1; rows the node gave up under its byte cap; meta.rows_deleted
  damaged TEXT,                         -- -; an earlier file of that node that was set aside; meta.damaged
  PRIMARY KEY (node, file_id)
) WITHOUT ROWID;

-- The clock of a node against that of the collector: a row when it moved by more than what was not
-- sure, and every ten minutes.
CREATE TABLE node_clock (
  node TEXT NOT NULL,                   -- -; NodeName
  time_ns INTEGER NOT NULL,             -- ns; when it was measured; the collector's clock
  offset_ns INTEGER NOT NULL,           -- ns; the node's clock minus the collector's
  band_ns INTEGER NOT NULL,             -- ns; offset_ns is within this of the truth: half the round trip, and drift since
  PRIMARY KEY (node, time_ns)
) WITHOUT ROWID;
