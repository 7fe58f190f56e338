-- node.db, schema version 3: what one node recorded. Written by sphase-recorder (one per step,
-- several at a time), read by sphase-collector. SQLite, WAL, local disk only.
--
-- Every column: -- unit; meaning; source.
-- NULL means "could not be known"; the reason is a row of `notice` or a *_reason column. Never 0.
-- Times are ns since the Unix epoch: CLOCK_MONOTONIC stamps plus one offset per run, so that a
-- stepped wall clock never bends a duration.
--
-- Version 2 added the columns run.counter_* and the tables of counter.sql and segment.sql; version 3
-- those of shipping.sql.

CREATE TABLE run (
  run_id INTEGER PRIMARY KEY,           -- 1; number of the run in this file; SQLite
  cluster TEXT NOT NULL,                -- -; ClusterName; SLURM_CLUSTER_NAME of the job
  job_id INTEGER NOT NULL,              -- 1; raw job id (never the array's); S_JOB_ID
  restart_count INTEGER NOT NULL,       -- 1; how often the job was requeued before; SLURM_RESTART_COUNT, else S_SLURM_RESTART_COUNT
  start_ns INTEGER NOT NULL,            -- ns; the plugin started this run; clock
  step TEXT NOT NULL,                   -- -; '0', '1', … or 'batch', 'interactive' (a kind, never a number); S_JOB_STEPID
  node TEXT NOT NULL,                   -- -; NodeName; SLURMD_NODENAME of slurmstepd
  array_job_id INTEGER,                 -- 1; id of the array, NULL: not an array; S_JOB_ARRAY_ID
  array_task_id INTEGER,                -- 1; index in the array; S_JOB_ARRAY_TASK_ID
  het_job_id INTEGER,                   -- 1; id of the leading component, NULL: not heterogeneous, or not told; SLURM_JOB_ID_HET_GROUP_0
  het_offset INTEGER,                   -- 1; component number; the n of SLURM_JOB_ID_HET_GROUP_n that is this job
  uid INTEGER NOT NULL,                 -- 1; owner of the job; S_JOB_UID
  job_name TEXT,                        -- -; SLURM_JOB_NAME
  partition TEXT,                       -- -; SLURM_JOB_PARTITION
  account TEXT,                         -- -; SLURM_JOB_ACCOUNT
  node_index INTEGER,                   -- 1; this node's number in the step, from 0; S_JOB_NODEID
  step_nodes INTEGER,                   -- 1; nodes of the step; S_JOB_NNODES
  step_tasks INTEGER,                   -- 1; tasks of the step on all nodes; S_JOB_TOTAL_TASK_COUNT
  node_tasks INTEGER,                   -- 1; tasks of the step on this node; S_JOB_LOCAL_TASK_COUNT
  job_cpus INTEGER,                     -- 1; CPUs of this node allocated to the job; S_JOB_ALLOC_CORES or SLURM_CPUS_ON_NODE
  step_cpus INTEGER,                    -- 1; CPUs of this node allocated to the step; S_STEP_ALLOC_CORES
  job_memory_bytes INTEGER,             -- B; memory of this node allocated to the job; S_JOB_ALLOC_MEM
  step_memory_bytes INTEGER,            -- B; memory of this node allocated to the step; S_STEP_ALLOC_MEM
  options TEXT,                         -- -; value of --phase-telemetry as given, or the site default
  profile TEXT,                         -- -; profile=NAME of the option
  period_ns INTEGER NOT NULL,           -- ns; distance of periodic samples; option or site default
  tick_ns INTEGER,                      -- ns; the kernel adds CPU time to cgroups this often; CLOCK_MONOTONIC_COARSE resolution
  sphase_version TEXT NOT NULL,         -- -; of the plugin
  slurm_version TEXT,                   -- -; S_SLURM_VERSION
  boot_id TEXT,                         -- -; /proc/sys/kernel/random/boot_id
  recorder_pid INTEGER,                 -- 1; the recorder's process id on the node
  last_ns INTEGER,                      -- ns; last sign of life of the recorder (updated at each commit)
  end_ns INTEGER,                       -- ns; end of the run, NULL: still running, or the recorder was lost
  end_reason TEXT,                      -- -; 'step ended' | 'slurmstepd vanished' | 'deadline'
  cpu_source TEXT,                      -- -; tier of CPU time: 'cgroup1 cpuacct' | 'cgroup2 cpu.stat' | 'proc stat' | NULL
  cpu_reason TEXT,                      -- -; why no better tier
  memory_source TEXT,                   -- -; tier of memory: 'cgroup1 memory' | 'cgroup2 memory' | 'proc statm' | NULL
  memory_reason TEXT,                   -- -; why no better tier
  io_source TEXT,                       -- -; tier of I/O: 'proc io' | NULL
  io_reason TEXT,                       -- -; why none
  markers INTEGER NOT NULL DEFAULT 0,           -- 1; markers read from the ring; recorder
  markers_dropped INTEGER NOT NULL DEFAULT 0,   -- 1; lost because the ring was full; ring header
  markers_invalid INTEGER NOT NULL DEFAULT 0,   -- 1; not understood (garbage, unknown client, torn); recorder
  samples_dropped INTEGER NOT NULL DEFAULT 0,   -- 1; samples that could not be stored; recorder
  edge_lag_p50_ns INTEGER,              -- ns; median delay from a marker to the read of its counters; recorder
  edge_lag_p99_ns INTEGER,              -- ns; 99th percentile of it; recorder
  recorder_cpu_ns INTEGER,              -- ns; CPU time the recorder itself used; CLOCK_PROCESS_CPUTIME_ID
  recorder_rss_bytes INTEGER,           -- B; the recorder's own resident memory at its largest; getrusage
  counter_source TEXT,                  -- -; tier of counters: 'papi-hw' | 'papi-sw' | 'none' | NULL: recorded by version 1
  counter_reason TEXT,                  -- -; why none, or what is not counted
  counter_refused INTEGER NOT NULL DEFAULT 0,   -- 1; readings that were no counts (negative, or going down); recorder
  UNIQUE (cluster, job_id, restart_count, start_ns, step, node)
);

CREATE TABLE task (
  run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  task INTEGER NOT NULL,                -- 1; local task id on this node, from 0; S_TASK_ID
  global_task INTEGER,                  -- 1; task id in the step (MPI rank); S_TASK_GLOBAL_ID
  pid INTEGER,                          -- 1; first process of the task; S_TASK_PID
  start_ns INTEGER,                     -- ns; attached, before it ran its program; clock
  end_ns INTEGER,                       -- ns; Slurm reaped it; clock
  exit_status INTEGER,                  -- wait status, as wait(2) gives it; S_TASK_EXIT_STATUS
  cpu_time_ns INTEGER,                  -- ns; CPU time of the task and its children; cpu_source of the run; NULL where tasks share a cgroup
  PRIMARY KEY (run_id, task)
) WITHOUT ROWID;

-- All counters of a run (one step on one node, all its tasks together) at one time.
CREATE TABLE sample (
  run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  time_ns INTEGER NOT NULL,             -- ns; when the counters were read
  kind TEXT NOT NULL,                   -- -; 'start' | 'tick' (periodic) | 'edge' (a marker) | 'task end' | 'end'
  cpu_time_ns INTEGER,                  -- ns; monotonic; CPU time since the step began; cpu_source
  memory_current_bytes INTEGER,         -- B; gauge; everything charged, page cache too; memory.usage_in_bytes / memory.current
  memory_anon_bytes INTEGER,            -- B; gauge; memory.stat total_rss / anon
  memory_file_bytes INTEGER,            -- B; gauge; page cache without shmem; memory.stat total_cache - total_shmem / file - shmem
  memory_shmem_bytes INTEGER,           -- B; gauge; memory.stat total_shmem / shmem
  memory_kernel_bytes INTEGER,          -- B; gauge; memory.kmem.usage_in_bytes / memory.stat kernel
  memory_peak_bytes INTEGER,            -- B; monotonic; high-water mark of memory_current_bytes; memory.max_usage_in_bytes / memory.peak, summed over task groups
  io_read_bytes INTEGER,                -- B; monotonic; fetched from storage; /proc/PID/io read_bytes
  io_write_bytes INTEGER,               -- B; monotonic; sent to storage; /proc/PID/io write_bytes
  io_read_call_bytes INTEGER,           -- B; monotonic; moved by read calls, cache and network file systems too; /proc/PID/io rchar
  io_write_call_bytes INTEGER,          -- B; monotonic; moved by write calls; /proc/PID/io wchar
  processes INTEGER,                    -- 1; gauge; processes of the step on this node
  PRIMARY KEY (run_id, time_ns, kind)
) WITHOUT ROWID;

-- One instance of a phase in one task. Threads and child processes of a task that mark the same
-- path with the same number are one instance: from the first begin to the last end.
CREATE TABLE phase (
  run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  scope TEXT NOT NULL,                  -- -; 'task' (marked inside a program) | 'shell' (marked by the sphase command)
  task INTEGER NOT NULL,                -- 1; local task id
  path TEXT NOT NULL,                   -- -; names from the outermost to this one, joined by '/'
  number INTEGER NOT NULL,              -- 1; instance, from 1, counted per task and path
  depth INTEGER NOT NULL,               -- 1; phases around it, from 0
  count INTEGER NOT NULL,               -- 1; begin/end pairs in this row: 1, or more when folded or marked by several threads
  threads INTEGER NOT NULL,             -- 1; threads or child processes that marked it
  begin_ns INTEGER NOT NULL,            -- ns; first begin
  end_ns INTEGER,                       -- ns; last end, NULL: still open
  wall_ns INTEGER,                      -- ns; time inside it: end - begin, or the sum over the pairs when folded
  cpu_time_ns INTEGER,                  -- ns; CPU time of the whole task in it; cpu_source
  cpu_source TEXT,                      -- -; 'process' (stamped by the marker) | 'cgroup' | 'proc' | 'share' (folded: split by time)
  cpu_resolution_ns INTEGER,            -- ns; cpu_time_ns is within this of the truth
  memory_peak_bytes INTEGER,            -- B; most memory (without page cache) of the step on this node while it was open
  memory_peak_source TEXT,              -- -; 'peak' (the kernel's mark, set anew at its edges, less page cache there: exact) | 'high-water' (the kernel's mark rose in it) | 'sampled' (a lower bound)
  edge_lag_ns INTEGER,                  -- ns; the larger delay of its two edges from marker to read
  flags INTEGER NOT NULL DEFAULT 0,     -- bits; PhaseFlag of common/vocabulary.h
  PRIMARY KEY (run_id, scope, task, path, number)
) WITHOUT ROWID;

CREATE TABLE value (
  run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  time_ns INTEGER NOT NULL,             -- ns; when it was marked
  task INTEGER NOT NULL,                -- 1; local task id
  path TEXT NOT NULL,                   -- -; phase it was marked in, '' outside of all
  name TEXT NOT NULL,                   -- -; as marked
  value REAL NOT NULL,                  -- the application's unit
  PRIMARY KEY (run_id, time_ns, task, name)
) WITHOUT ROWID;

CREATE TABLE attribute (
  run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  task INTEGER NOT NULL,                -- 1; local task id
  path TEXT NOT NULL,                   -- -; phase it was marked in, '' outside of all
  key TEXT NOT NULL,                    -- -; as marked
  value TEXT NOT NULL,                  -- -; as marked, the last one wins
  PRIMARY KEY (run_id, task, path, key)
) WITHOUT ROWID;

-- Why something is missing or inexact, in words. run_id NULL: the run itself could not be recorded.
CREATE TABLE notice (
  run_id INTEGER REFERENCES run ON DELETE CASCADE,
  cluster TEXT NOT NULL,                -- -; as in run
  job_id INTEGER NOT NULL,              -- 1; as in run
  restart_count INTEGER NOT NULL,       -- 1; as in run
  step TEXT NOT NULL,                   -- -; as in run
  node TEXT NOT NULL,                   -- -; as in run
  time_ns INTEGER NOT NULL,             -- ns; when it was noticed
  code TEXT NOT NULL,                   -- -; a word for programs: NoticeCode of common/vocabulary.h
  text TEXT NOT NULL,                   -- -; one sentence for people
  UNIQUE (cluster, job_id, restart_count, step, node, time_ns, code)
);

CREATE TABLE meta (
  key TEXT PRIMARY KEY,                 -- -; 'node', 'rows_deleted' (old rows given up under the byte cap), 'damaged' (name of a file set aside)
  value TEXT NOT NULL                   -- -; as the key says
) WITHOUT ROWID;
