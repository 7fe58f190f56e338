-- cluster.db, since version 4: what the collector keeps about the scheduler's records beside the
-- table job. Times: s since the Unix epoch.

-- Jobs of which a daemon may still have something to say. Filled by the triggers below and by
-- whoever writes records, emptied when the last word is known: the cost of a look follows from its
-- length, never from that of the history.
CREATE TABLE open_job (
  cluster TEXT NOT NULL,                -- -; as in job
  job_id INTEGER NOT NULL,              -- 1; as in job
  since_time INTEGER NOT NULL,          -- s; earliest that a run, a notice or a record tells of it
  misses INTEGER NOT NULL DEFAULT 0,    -- 1; looks in a row in which no daemon knew it
  ask_time INTEGER NOT NULL DEFAULT 0,  -- s; not before; later and later where no daemon knows it
  PRIMARY KEY (cluster, job_id)
) WITHOUT ROWID;

-- Times in which the tasks of a job were stopped, as far as a look at slurmctld saw them.
-- job.suspended_s has the sum that Slurm knows.
CREATE TABLE suspension (
  cluster TEXT NOT NULL,                -- -; as in job
  job_id INTEGER NOT NULL,              -- 1; as in job
  submit_time INTEGER NOT NULL,         -- s; as in job
  restart_count INTEGER NOT NULL,       -- 1; as in job
  begin_time INTEGER NOT NULL,          -- s; suspend_time of slurmctld, or computed from pre_sus_time
  end_time INTEGER,                     -- s; NULL: still suspended
  PRIMARY KEY (cluster, job_id, submit_time, restart_count, begin_time)
) WITHOUT ROWID;

-- Why a job waited, as successive looks at slurmctld saw it: a row for each change.
CREATE TABLE wait_reason (
  cluster TEXT NOT NULL,                -- -; as in job
  job_id INTEGER NOT NULL,              -- 1; as in job
  submit_time INTEGER NOT NULL,         -- s; as in job
  restart_count INTEGER NOT NULL,       -- 1; as in job
  begin_time INTEGER NOT NULL,          -- s; first look that saw it; collector's clock
  end_time INTEGER,                     -- s; start of the job, or first look that saw another one; NULL: still
  reason TEXT NOT NULL,                 -- -; Slurm's word, e.g. Resources
  PRIMARY KEY (cluster, job_id, submit_time, restart_count, begin_time)
) WITHOUT ROWID;

CREATE INDEX job_helper ON job (helper_of) WHERE helper_of IS NOT NULL;

-- No upsert: the statement that fires a trigger overrides how it treats conflicts, and notices come
-- by INSERT OR IGNORE (sqlite.org/lang_createtrigger.html).
CREATE TRIGGER run_opens AFTER INSERT ON run BEGIN
  UPDATE open_job SET since_time = min(since_time, new.start_ns / 1000000000), ask_time = 0
    WHERE cluster = new.cluster AND job_id = new.job_id;
  INSERT INTO open_job(cluster, job_id, since_time)
    SELECT new.cluster, new.job_id, new.start_ns / 1000000000 WHERE NOT EXISTS (
      SELECT 1 FROM open_job WHERE cluster = new.cluster AND job_id = new.job_id);
END;
CREATE TRIGGER notice_opens AFTER INSERT ON notice BEGIN
  UPDATE open_job SET since_time = min(since_time, new.time_ns / 1000000000), ask_time = 0
    WHERE cluster = new.cluster AND job_id = new.job_id;
  INSERT INTO open_job(cluster, job_id, since_time)
    SELECT new.cluster, new.job_id, new.time_ns / 1000000000 WHERE NOT EXISTS (
      SELECT 1 FROM open_job WHERE cluster = new.cluster AND job_id = new.job_id);
END;
