-- Hardware and software events by PAPI, of one task in one instance of a phase. In node.db since
-- version 2, in cluster.db since 3.
-- The row with path '' and number 0 is the whole task, from before it ran its program to its end.
-- A value is what was counted, never scaled up: an event that took turns with others (events=…+mpx)
-- happened about value * time_enabled_ns / time_running_ns times.
CREATE TABLE counter (
  run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  scope TEXT NOT NULL,                  -- -; as in phase; 'task' for the whole task
  task INTEGER NOT NULL,                -- 1; local task id
  path TEXT NOT NULL,                   -- -; as in phase, '' = the whole task
  number INTEGER NOT NULL,              -- 1; as in phase, 0 = the whole task
  event TEXT NOT NULL,                  -- -; PAPI's name, e.g. 'PAPI_TOT_INS'
  value INTEGER,                        -- 1; events counted, in user mode, children included; NULL: it had its turn in less than 1 % of the time, or was no count
  time_enabled_ns INTEGER,              -- ns; CPU time of the task in it, all threads added; NULL: the event did not take turns
  time_running_ns INTEGER,              -- ns; the part of it in which the event was counted; likewise
  PRIMARY KEY (run_id, scope, task, path, number, event)
) WITHOUT ROWID;
