-- Segments of node.db (segment.sql) whose rows are in this file. In cluster.db since version 3: a run
-- that goes on is merged again and again, and what was sealed of it never changes.
CREATE TABLE merged_segment (
  run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  source TEXT NOT NULL,                 -- -; as in segment
  sealed_ns INTEGER NOT NULL,           -- ns; as in segment; with run and source it says which one, also in a copy of the file
  PRIMARY KEY (run_id, source, sealed_ns)
) WITHOUT ROWID;
