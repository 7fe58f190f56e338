#include "spank/recorder/store/run_store.h"

#include <doctest/doctest.h>

#include "common/vocabulary.h"
#include "tests/spank/recorder/store/store_harness.h"

using namespace sphase;
using namespace sphase::testing;

TEST_CASE("a run is stored with what is known, and what is not known is NULL") {
  Place place;
  RunStore store(place.start);
  Batch batch = samples(1);
  batch.samples[0].kind = "start";
  TaskRow task;
  task.global_task = UINT32_MAX;
  task.pid = 77;
  batch.tasks.push_back(task);
  PhaseRow phase;
  phase.path = "a";
  phase.number = 1;
  batch.phases.push_back(phase);
  store.add(std::move(batch));
  CHECK(store.anything_waits());
  must(store.commit(state()));
  CHECK_FALSE(store.anything_waits());

  CHECK(place.number("SELECT count(*) FROM run WHERE cluster = 'c1' AND job_id = 42") == 1);
  for (const char* column :
       {"array_job_id",   "array_task_id", "het_job_id",       "het_offset",
        "node_index",     "step_nodes",    "step_tasks",       "node_tasks",
        "job_cpus",       "step_cpus",     "job_memory_bytes", "step_memory_bytes",
        "job_name",       "partition",     "account",          "profile",
        "slurm_version",  "end_ns",        "end_reason",       "cpu_source",
        "cpu_reason",     "memory_source", "io_source",        "edge_lag_p50_ns",
        "edge_lag_p99_ns"}) {
    CAPTURE(column);
    CHECK(place.number("SELECT " + std::string(column) + " IS NULL FROM run") == 1);
  }
  for (const char* column :
       {"recorder_pid", "boot_id", "tick_ns", "recorder_cpu_ns", "recorder_rss_bytes", "last_ns"}) {
    CAPTURE(column);
    CHECK(place.number("SELECT " + std::string(column) + " IS NOT NULL FROM run") == 1);
  }
  CHECK(place.number("SELECT global_task IS NULL AND cpu_time_ns IS NULL FROM task") == 1);
  CHECK(place.number("SELECT cpu_time_ns IS NULL AND memory_peak_bytes IS NULL AND io_read_bytes"
                     " IS NULL AND processes IS NULL FROM sample") == 1);
  CHECK(place.number("SELECT end_ns IS NULL AND cpu_time_ns IS NULL AND memory_peak_bytes IS NULL"
                     " AND memory_peak_source IS NULL FROM phase") == 1);
}

TEST_CASE("zeros are zeros") {
  Place place;
  place.start.node_index = 0;
  RunStore store(place.start);
  Batch batch = samples(1);
  batch.samples[0].cpu_time_ns = 0;
  batch.samples[0].memory.anon = 0;
  batch.samples[0].io = Io{};
  batch.samples[0].processes = 0;
  store.add(std::move(batch));
  must(store.commit(state()));
  CHECK(place.number("SELECT node_index = 0 FROM run") == 1);
  CHECK(place.number("SELECT cpu_time_ns = 0 AND memory_anon_bytes = 0 AND io_write_bytes = 0"
                     " AND processes = 0 FROM sample") == 1);
}

TEST_CASE("all kinds of rows arrive, and the last of a phase and of an attribute wins") {
  Place place;
  RunStore store(place.start);
  Batch batch;
  PhaseRow phase;
  phase.path = "a";
  phase.number = 1;
  batch.phases.push_back(phase);
  phase.end_ns = 9;
  phase.cpu = CpuTime{5, 1, "process"};
  phase.memory_peak_bytes = 100;
  phase.memory_peak_source = "high-water";
  phase.flags = kUnclosed;
  batch.phases.push_back(phase);
  batch.values.push_back({3, 0, "a", "residual", 0.5});
  batch.attributes.push_back({0, "a", "cells", "1"});
  batch.attributes.push_back({0, "a", "cells", "2"});
  batch.notices.push_back({4, "gap", "why"});
  store.add(std::move(batch));
  must(store.commit(state()));
  CHECK(place.number("SELECT count(*) FROM phase") == 1);
  CHECK(place.number("SELECT end_ns = 9 AND cpu_time_ns = 5 AND cpu_source = 'process' AND"
                     " memory_peak_source = 'high-water' AND flags = 1 FROM phase") == 1);
  CHECK(place.number("SELECT value = 0.5 FROM value") == 1);
  CHECK(place.text("SELECT value FROM attribute") == "2");
  CHECK(place.text("SELECT text FROM notice") == "why");
  CHECK(place.number("SELECT job_id = 42 AND node = 'n1' AND run_id IS NOT NULL FROM notice") == 1);
}

TEST_CASE("text that a job chose is stored as text, whatever is in it") {
  Place place;
  std::snprintf(place.start.job_name, sizeof(place.start.job_name), "x'); DROP TABLE run; --");
  RunStore store(place.start);
  Batch batch;
  batch.attributes.push_back({0, "'", "\"", "'; DELETE FROM run; --"});
  store.add(std::move(batch));
  must(store.commit(state()));
  CHECK(place.text("SELECT job_name FROM run") == "x'); DROP TABLE run; --");
}

TEST_CASE("the run's row follows its state, and its end is kept") {
  Place place;
  RunStore store(place.start);
  must(store.commit(state()));
  RunState later = state();
  later.markers = 7;
  later.markers_dropped = 2;
  later.cpu = {"cgroup1 cpuacct", ""};
  later.memory = {"proc statm", "why"};
  later.end_ns = 99;
  later.end_reason = "step ended";
  must(store.commit(later));
  CHECK(place.number("SELECT count(*) FROM run") == 1);
  CHECK(place.number("SELECT markers = 7 AND markers_dropped = 2 AND end_ns = 99 AND cpu_source ="
                     " 'cgroup1 cpuacct' AND cpu_reason IS NULL AND memory_reason = 'why'"
                     " FROM run") == 1);
}

TEST_CASE("counts are stored by the names of their events, for phases and for whole tasks") {
  Place place;
  RunStore store(place.start);
  Batch batch;
  TaskRow task;
  task.task = 3;
  task.counts = {{900}, {std::nullopt}};
  batch.tasks.push_back(task);
  PhaseRow phase;
  phase.task = 3;
  phase.path = "solve";
  phase.number = 2;
  phase.counts = {{500}, {7, 100, 40}};
  batch.phases.push_back(phase);
  store.add(std::move(batch));
  RunState now = state();
  now.counters = {"papi-hw", "not counted: X"};
  now.events = {"PAPI_TOT_INS", "PAPI_L3_TCM"};
  now.counters_refused = 1;
  must(store.commit(now));

  CHECK(place.number("SELECT count(*) FROM counter") == 4);
  CHECK(place.number("SELECT value FROM counter WHERE task = 3 AND path = '' AND number = 0"
                     " AND event = 'PAPI_TOT_INS'") == 900);
  CHECK(place.number("SELECT value IS NULL FROM counter WHERE path = ''"
                     " AND event = 'PAPI_L3_TCM'") == 1);
  CHECK(place.number("SELECT value FROM counter WHERE path = 'solve' AND number = 2"
                     " AND event = 'PAPI_TOT_INS' AND time_enabled_ns IS NULL") == 500);
  CHECK(place.number("SELECT value * 10000 + time_enabled_ns * 10 + time_running_ns FROM counter"
                     " WHERE path = 'solve' AND event = 'PAPI_L3_TCM'") == 71040);
  CHECK(place.text("SELECT counter_source || ', ' || counter_reason FROM run") ==
        "papi-hw, not counted: X");
  CHECK(place.number("SELECT counter_refused FROM run") == 1);
}

TEST_CASE("a phase that is stored again has its new counts") {
  Place place;
  RunStore store(place.start);
  RunState now = state();
  now.events = {"PAPI_TOT_INS"};
  for (const std::int64_t value : {5, 8}) {
    Batch batch;
    PhaseRow phase;
    phase.path = "a";
    phase.number = 1;
    phase.counts = {{value}};
    batch.phases.push_back(phase);
    store.add(std::move(batch));
    must(store.commit(now));
  }
  CHECK(place.number("SELECT count(*) * 100 + max(value) FROM counter") == 108);
}
