-- cluster.db, schema version 1: what all nodes recorded, and what slurmctld and slurmdbd know.
-- Written by sphase-collector, read by sphase. The tables run, task, sample, phase, value,
-- attribute and notice are those of node.db (common/schema/node.sql is applied first); run_id is
-- this file's own. The tables below hold the scheduler's records. Times: s since the Unix epoch,
-- as Slurm keeps them; NULL = not known or not yet.

-- One start of one job, as slurmctld or slurmdbd knows it. A requeued job has one row per start.
CREATE TABLE job (
  cluster TEXT NOT NULL,                -- -; ClusterName
  job_id INTEGER NOT NULL,              -- 1; raw job id
  restart_count INTEGER NOT NULL,       -- 1; order of this start among those of the same submission, from 0
  submit_time INTEGER NOT NULL,         -- s; first submission (a job id that was reused has another one)
  array_job_id INTEGER,                 -- 1; NULL: not an array
  array_task_id INTEGER,                -- 1
  het_job_id INTEGER,                   -- 1; NULL: not heterogeneous
  het_offset INTEGER,                   -- 1
  uid INTEGER,                          -- 1
  user TEXT,                            -- -; login name
  account TEXT,                         -- -
  name TEXT,                            -- -
  partition TEXT,                       -- -
  qos TEXT,                             -- -
  state TEXT,                           -- -; Slurm's word, e.g. COMPLETED
  state_reason TEXT,                    -- -; Slurm's word
  exit_code INTEGER,                    -- wait status
  eligible_time INTEGER,                -- s
  start_time INTEGER,                   -- s
  end_time INTEGER,                     -- s; NULL while running
  time_limit_s INTEGER,                 -- s; NULL: none
  suspended_s INTEGER,                  -- s; time it was suspended
  requested_nodes INTEGER,              -- 1; as far as Slurm still knows
  requested_cpus INTEGER,               -- 1
  requested_memory TEXT,                -- -; Slurm's own notation, e.g. '4000M per node', '1G per cpu'
  source TEXT NOT NULL,                 -- -; 'slurmctld' | 'slurmdbd' | 'slurmctld+slurmdbd'
  seen_ns INTEGER NOT NULL,             -- ns; when we last read it
  PRIMARY KEY (cluster, job_id, submit_time, restart_count)
) WITHOUT ROWID;

-- An interval with constant nodes, CPUs and memory. A resized job has several.
CREATE TABLE allocation (
  cluster TEXT NOT NULL,                -- -; as in job
  job_id INTEGER NOT NULL,              -- 1; as in job
  submit_time INTEGER NOT NULL,         -- s; as in job
  restart_count INTEGER NOT NULL,       -- 1; as in job
  start_time INTEGER NOT NULL,          -- s
  end_time INTEGER,                     -- s; NULL: still held
  state TEXT,                           -- -; RESIZING for an interval that ended in a resize
  nodes TEXT,                           -- -; host list expression, e.g. 'n[1-4]'
  node_count INTEGER,                   -- 1
  cpus INTEGER,                         -- 1; over all nodes
  memory_bytes INTEGER,                 -- B; over all nodes; AllocTRES mem
  tres TEXT,                            -- -; AllocTRES as Slurm writes it
  PRIMARY KEY (cluster, job_id, submit_time, restart_count, start_time)
) WITHOUT ROWID;

-- CPUs and memory of each node of an allocation, where slurmctld still knew them.
CREATE TABLE allocation_node (
  cluster TEXT NOT NULL,                -- -; as in job
  job_id INTEGER NOT NULL,              -- 1; as in job
  submit_time INTEGER NOT NULL,         -- s; as in job
  restart_count INTEGER NOT NULL,       -- 1; as in job
  start_time INTEGER NOT NULL,          -- s; of the allocation
  node TEXT NOT NULL,                   -- -; NodeName
  cpus INTEGER,                         -- 1; NULL: not known, see run.job_cpus
  memory_bytes INTEGER,                 -- B; NULL: not known, see run.job_memory_bytes
  PRIMARY KEY (cluster, job_id, submit_time, restart_count, start_time, node)
) WITHOUT ROWID;

-- Files merged so far, for `sphase jobs` and for people.
CREATE TABLE source (
  path TEXT PRIMARY KEY,                -- -; absolute path of the node.db, directory or note
  node TEXT,                            -- -; meta.node of that file
  merged_ns INTEGER NOT NULL,           -- ns; last time
  runs INTEGER NOT NULL,                -- 1; runs it held then
  rows_deleted INTEGER,                 -- 1; rows the node gave up under its byte cap; meta.rows_deleted
  damaged TEXT,                         -- -; an earlier file of that node that was set aside; meta.damaged
  problem TEXT                          -- -; why it could not be read, NULL: it could
) WITHOUT ROWID;

-- How people look for a job: by its number alone.
CREATE INDEX run_job ON run (job_id);
CREATE INDEX run_array ON run (array_job_id);
CREATE INDEX run_het ON run (het_job_id);
CREATE INDEX job_job ON job (job_id);
CREATE INDEX job_array ON job (array_job_id);
CREATE INDEX job_het ON job (het_job_id);
CREATE INDEX notice_job ON notice (job_id);
