// A run and its node.db in a temporary folder.
#pragma once

#include <doctest/doctest.h>

#include <fstream>
#include <random>
#include <string>

#include "common/clock.h"
#include "spank/recorder/store/run_store.h"
#include "tests/common/tools.h"

namespace sphase::testing {

/// A run of job 42 on node n1, and where its node.db and notes are.
struct Place {
  Place() {
    start.type = SPHASE_LINK_START;
    start.start_ns = static_cast<std::uint64_t>(epoch_ns());
    start.job_id = 42;
    start.uid = 1000;
    for (std::uint64_t* unknown :
         {&start.array_job_id, &start.array_task_id, &start.het_job_id, &start.het_offset,
          &start.node_index, &start.step_nodes, &start.step_tasks, &start.node_tasks,
          &start.job_cpus, &start.step_cpus, &start.job_memory_bytes, &start.step_memory_bytes}) {
      *unknown = SPHASE_LINK_UNKNOWN;
    }
    start.period_ns = 1'000'000'000;
    start.max_bytes = 64 << 20;
    std::snprintf(start.step, sizeof(start.step), "0");
    std::snprintf(start.cluster, sizeof(start.cluster), "c1");
    std::snprintf(start.node, sizeof(start.node), "n1");
    std::snprintf(start.node_db, sizeof(start.node_db), "%s", path().c_str());
    std::snprintf(start.run_dir, sizeof(start.run_dir), "%s", (folder / "run").c_str());
  }
  std::string path() const { return folder / "db/node.db"; }
  Database db() const {
    auto opened = Database::open(path(), Database::Mode::kReadWrite);
    REQUIRE(opened);
    return std::move(*opened);
  }
  std::int64_t number(const std::string& sql) const {
    Database opened = db();
    auto query = opened.prepare(sql);
    REQUIRE_MESSAGE(query, sql);
    REQUIRE(query->step());
    return query->integer(0);
  }
  std::string text(const std::string& sql) const {
    Database opened = db();
    auto query = opened.prepare(sql);
    REQUIRE_MESSAGE(query, sql);
    REQUIRE(query->step());
    return query->text(0);
  }
  TempFolder folder;
  sphase_link_start start{};
};

inline RunState state() {
  RunState out;
  out.last_ns = epoch_ns();
  return out;
}

inline Batch samples(int count, std::int64_t from = 1) {
  Batch batch;
  for (int i = 0; i < count; ++i) {
    SampleRow row;
    row.time_ns = from + i;
    batch.samples.push_back(row);
  }
  return batch;
}

/// Rows that hardly compress.
inline Batch noisy_samples(int count) {
  Batch batch = samples(count);
  std::mt19937_64 random(5);
  for (SampleRow& row : batch.samples) {
    row.cpu_time_ns = static_cast<std::int64_t>(random() >> 4);
    row.memory.anon = static_cast<std::int64_t>(random() >> 4);
    row.memory.file = static_cast<std::int64_t>(random() >> 4);
  }
  return batch;
}

inline void must(const Status& done) { REQUIRE_MESSAGE(done, (done ? "" : done.error())); }

/// Overwrites everything but the first page, as a bad disk would.
inline void damage(const std::string& path) {
  {
    REQUIRE(
        Database::open(path, Database::Mode::kReadWrite)->exec("PRAGMA wal_checkpoint(TRUNCATE)"));
  }
  const auto size = std::filesystem::file_size(path);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(4096);
  file << std::string(size - 4096, '\xd1');
}

}  // namespace sphase::testing
