-- Sealed rows: older rows of `sample`, `phase` and `counter`, many in one compressed value. In
-- node.db since version 2; cluster.db keeps them as they are (sealed.sql).
-- A row is either here or in its own table; a phase that was changed after it was sealed is in both,
-- and in two segments once it is sealed again: the row in its own table wins, then the segment with
-- the higher segment_id. How to see all rows: docs/design.md, node.db.
CREATE TABLE segment (
  segment_id INTEGER PRIMARY KEY,       -- 1; order in which segments were written; SQLite
  run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  source TEXT NOT NULL,                 -- -; table of the rows: 'sample' | 'phase' | 'counter'
  sealed_ns INTEGER NOT NULL,           -- ns; when it was written, later than any other of the run; clock
  rows INTEGER NOT NULL,                -- 1; rows in it
  data BLOB NOT NULL                    -- -; all columns of the rows but run_id; format in common/segment.cpp
);
CREATE INDEX segment_run ON segment (run_id, source);
