-- cluster.db, schema version 4: what all nodes recorded, what slurmctld and slurmdbd know, and what
-- was learned from both.
-- Written by sphase-collector, read by sphase. The tables run, task, sample, phase, value,
-- attribute, notice and counter are those of node.db (node.sql, counter.sql, sealed.sql and
-- shippers.sql are applied first, records.sql last); run_id is this file's own. Version 3 added
-- counters; version 4 keeps sealed rows as they come, and has what records.sql, sealed.sql and
-- shippers.sql have.
-- The tables below hold the scheduler's records. Times: s since the Unix epoch, as Slurm keeps them; NULL = not
-- known or not yet.

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
  requested_nodes INTEGER,              -- 1; at submission; NULL where only a look after a resize was had
  requested_cpus INTEGER,               -- 1
  requested_memory TEXT,                -- -; Slurm's own notation, e.g. '4000M per node', '1G per cpu'
  source TEXT NOT NULL,                 -- -; 'slurmctld' | 'slurmdbd' | 'slurmctld+slurmdbd'
  seen_ns INTEGER NOT NULL,             -- ns; when we last read it
  admin_comment TEXT,                   -- -; AdminComment; holds the audit line of job_submit/phase_resize
  requested_time_limit_s INTEGER,       -- s; at submission, as far as a look saw it; time_limit_s is the present one
  array_tasks TEXT,                     -- -; of an array's tasks that wait as one record: '4-9', '4-9%2'
  helper_of INTEGER,                    -- 1; job id that it was submitted to expand; dependency or command line
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

-- Since version 2. An older file gets everything below this line as it stands here.

-- Job numbers of which something is new since they were learned from. Filled by the triggers
-- below, so that whoever writes need not think of it; emptied by `sphase-collector learn`. The cost
-- of learning follows from its length, never from that of the history.
CREATE TABLE learn_queue (
  cluster TEXT NOT NULL,                -- -; as in job
  job_id INTEGER NOT NULL,              -- 1; as in job
  PRIMARY KEY (cluster, job_id)
) WITHOUT ROWID;

-- One ended start of one job, as learning sees it: type ObservedJob.
CREATE TABLE observed_job (
  observed_id INTEGER PRIMARY KEY,      -- 1; number of this row; SQLite
  cluster TEXT NOT NULL,                -- -; as in job
  job_id INTEGER NOT NULL,              -- 1; as in job
  submit_time INTEGER NOT NULL,         -- s; as in job; 0: no record of the scheduler's
  restart_count INTEGER NOT NULL,       -- 1; as in job
  profile TEXT NOT NULL,                -- -; key, common/profile_key.h; audit line, or profile=NAME of a run
  start_time INTEGER NOT NULL,          -- s; of the job, or of its first run
  end_time INTEGER NOT NULL,            -- s; of the job, or of its last run
  name TEXT NOT NULL,                   -- -; of the job, '' = not known
  partition TEXT NOT NULL,              -- -; of the job, '' = not known
  nodes_asked INTEGER,                  -- 1; before anybody changed it; audit line, else job.requested_nodes
  learned_ns INTEGER NOT NULL,          -- ns; when it was observed; clock
  UNIQUE (cluster, job_id, submit_time, restart_count, start_time)
);
CREATE INDEX observed_profile ON observed_job (profile, end_time);

-- One phase of one observed job, all its instances together: type Observation.
CREATE TABLE observation (
  observed_id INTEGER NOT NULL REFERENCES observed_job ON DELETE CASCADE,
  position INTEGER NOT NULL,            -- 1; 0 the whole job, then phases in the order in which they begin
  path TEXT NOT NULL,                   -- -; as marked, '' = the whole job
  nodes INTEGER NOT NULL,               -- 1; allocated; most at one time
  nodes_used INTEGER NOT NULL,          -- 1; those that did a share of the work, or told nothing
  tasks INTEGER,                        -- 1; that marked it; of the whole job: of its widest step
  duration_s REAL NOT NULL,             -- s; wall time in which it was open, not suspended
  cpu_time_s REAL,                      -- s; over all nodes
  cpus_busy REAL,                       -- 1; most CPUs busy on one node over half a second or more
  memory_peak_bytes INTEGER,            -- B; of the node that had most
  memory_limit_bytes INTEGER,           -- B; what that node was given
  flags INTEGER NOT NULL,               -- bits; ObservationFlag of collector/learn/observation.h
  PRIMARY KEY (observed_id, position)
) WITHOUT ROWID;

-- Profiles whose advice is older than what is known: made anew by the next `learn`.
CREATE TABLE profile_touched (
  profile TEXT PRIMARY KEY              -- -; key, common/profile_key.h
) WITHOUT ROWID;

-- Profiles whose owner wanted them forgotten.
CREATE TABLE profile_forgotten (
  profile TEXT PRIMARY KEY,             -- -; key, common/profile_key.h
  before_ns INTEGER NOT NULL            -- ns; jobs that ended before are not learned from
) WITHOUT ROWID;

-- What a partition lets a job ask for. NULL = no limit known.
CREATE TABLE partition_limits (
  cluster TEXT NOT NULL,                -- -; ClusterName
  partition TEXT NOT NULL,              -- -; PartitionName
  nodes_least INTEGER,                  -- 1; MinNodes
  nodes_most INTEGER,                   -- 1; MaxNodes, never more than it has
  time_most_s INTEGER,                  -- s; MaxTime
  memory_most_bytes INTEGER,            -- B; per node: largest RealMemory - MemSpecLimit, capped by MaxMemPerNode or MaxMemPerCPU
  cpus_most INTEGER,                    -- 1; per node: most CPUs of a node, capped by MaxCPUsPerNode
  seen_ns INTEGER NOT NULL,             -- ns; when we last read it
  PRIMARY KEY (cluster, partition)
) WITHOUT ROWID;

-- Not INSERT OR IGNORE: the statement that fires a trigger overrides how it treats conflicts
-- (sqlite.org/lang_createtrigger.html).
CREATE TRIGGER run_new AFTER INSERT ON run BEGIN
  INSERT INTO learn_queue SELECT new.cluster, new.job_id WHERE NOT EXISTS (
    SELECT 1 FROM learn_queue WHERE cluster = new.cluster AND job_id = new.job_id);
END;
-- A run without an end is written again by each merge, also one whose recorder is long gone.
CREATE TRIGGER run_news AFTER UPDATE ON run
WHEN new.last_ns IS NOT old.last_ns OR new.end_ns IS NOT old.end_ns
  OR new.profile IS NOT old.profile BEGIN
  INSERT INTO learn_queue SELECT new.cluster, new.job_id WHERE NOT EXISTS (
    SELECT 1 FROM learn_queue WHERE cluster = new.cluster AND job_id = new.job_id);
END;
CREATE TRIGGER job_new AFTER INSERT ON job BEGIN
  INSERT INTO learn_queue SELECT new.cluster, new.job_id WHERE NOT EXISTS (
    SELECT 1 FROM learn_queue WHERE cluster = new.cluster AND job_id = new.job_id);
END;
-- Every look at the scheduler writes the row: only what learning reads is news.
CREATE TRIGGER job_news AFTER UPDATE ON job
WHEN new.start_time IS NOT old.start_time OR new.end_time IS NOT old.end_time
  OR new.state IS NOT old.state OR new.exit_code IS NOT old.exit_code
  OR new.suspended_s IS NOT old.suspended_s OR new.requested_nodes IS NOT old.requested_nodes
  OR new.name IS NOT old.name OR new.partition IS NOT old.partition
  OR new.admin_comment IS NOT old.admin_comment BEGIN
  INSERT INTO learn_queue SELECT new.cluster, new.job_id WHERE NOT EXISTS (
    SELECT 1 FROM learn_queue WHERE cluster = new.cluster AND job_id = new.job_id);
END;
CREATE TRIGGER allocation_new AFTER INSERT ON allocation BEGIN
  INSERT INTO learn_queue SELECT new.cluster, new.job_id WHERE NOT EXISTS (
    SELECT 1 FROM learn_queue WHERE cluster = new.cluster AND job_id = new.job_id);
END;
CREATE TRIGGER allocation_news AFTER UPDATE ON allocation
WHEN new.end_time IS NOT old.end_time OR new.node_count IS NOT old.node_count
  OR new.cpus IS NOT old.cpus OR new.memory_bytes IS NOT old.memory_bytes BEGIN
  INSERT INTO learn_queue SELECT new.cluster, new.job_id WHERE NOT EXISTS (
    SELECT 1 FROM learn_queue WHERE cluster = new.cluster AND job_id = new.job_id);
END;
