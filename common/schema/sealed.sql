-- Sealed rows as they came from the nodes (segment.sql), kept as they are: 14 B per sample instead of
-- 95, and written at the speed of the disk. In cluster.db since version 4; before that, their rows
-- stood in the tables `sample`, `phase` and `counter`, which now hold the live tail alone. How to see
-- all rows: `sphase export`.
-- Which row counts where there are several of one key: one in its own table, then the segment that
-- was sealed last.
CREATE TABLE segment (
  segment_id INTEGER PRIMARY KEY,       -- 1; number of the row; SQLite
  run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  source TEXT NOT NULL,                 -- -; table of the rows: 'sample' | 'phase' | 'counter'
  sealed_ns INTEGER NOT NULL,           -- ns; when the node sealed it; with run and source it says which one, also in a copy of the file
  rows INTEGER NOT NULL,                -- 1; rows in it, 0: they were too old to be kept, and data is empty
  last_ns INTEGER,                      -- ns; of samples: time of the last one; of phases: latest end; of counters: NULL
  data BLOB NOT NULL,                   -- -; all columns of the rows but run_id; format in common/segment.cpp
  UNIQUE (run_id, source, sealed_ns)
);
-- What is too old to be kept.
CREATE INDEX segment_age ON segment (source, last_ns);

-- Paths of the phases of a run, sealed or not.
CREATE TABLE phase_path (
  run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  path TEXT NOT NULL,                   -- -; as in phase
  PRIMARY KEY (run_id, path)
) WITHOUT ROWID;
