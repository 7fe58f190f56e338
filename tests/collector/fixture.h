// Databases made by SQL, and timelines made by hand. Times are given in seconds after kStart.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "collector/cluster_db.h"
#include "collector/timeline/timeline.h"
#include "common/schema.h"
#include "common/sqlite_db.h"
#include "common/vocabulary.h"
#include "tests/common/tools.h"

namespace sphase::testing {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kStartS = 1'700'000'000;
constexpr std::int64_t kStart = kStartS * kSecond;

inline std::int64_t ns(double seconds) { return std::llround(seconds * 1e9); }
inline std::int64_t at(double seconds) { return kStart + ns(seconds); }

/// A row of table `run`; what is not said is NULL or something harmless.
struct RunSpec {
  std::string cluster = "c1";
  std::int64_t job_id = 123, restart_count = 0;
  double begin_s = 0;
  std::optional<double> end_s = 10;
  std::optional<double> last_s = {};
  std::string step = "0", node = "n1";
  Maybe array_job_id = {}, array_task_id = {}, het_job_id = {}, het_offset = {};
  Maybe step_nodes = {}, node_tasks = 1, job_cpus = 4, step_cpus = 4;
  Maybe job_memory_bytes = 1000 * kMiB, step_memory_bytes = 1000 * kMiB;
  std::int64_t uid = 1000;
  std::string job_name = "solver";
  std::optional<std::string> cpu_source = "cgroup1 cpuacct";
  std::optional<std::string> io_source = "proc io", io_reason = {};
  std::int64_t markers_dropped = 0;
};

inline void run_sql(Database& db, const std::string& sql) {
  const auto done = db.exec(sql);
  INFO(sql);
  REQUIRE_MESSAGE(done, (done ? "" : done.error()));
}

inline std::int64_t add_run(Database& db, const RunSpec& spec) {
  auto insert = db.prepare(
      "INSERT INTO run(cluster, job_id, restart_count, start_ns, step, node, array_job_id,"
      " array_task_id, het_job_id, het_offset, uid, job_name, step_nodes, node_tasks, job_cpus,"
      " step_cpus, job_memory_bytes, step_memory_bytes, period_ns, sphase_version, last_ns, end_ns,"
      " cpu_source, memory_source, io_source, io_reason, markers_dropped, partition, account)"
      " VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,1000000000,'0.1.0',?,?,?,'cgroup1 memory',?,?,?,"
      " 'debug', 'acct')");
  REQUIRE_MESSAGE(insert, (insert ? "" : insert.error()));
  Maybe end, last;
  if (spec.end_s) end = at(*spec.end_s);
  if (spec.end_s || spec.last_s) last = at(spec.last_s.value_or(spec.end_s.value_or(0)));
  insert->bind(1, spec.cluster).bind(2, spec.job_id).bind(3, spec.restart_count);
  insert->bind(4, at(spec.begin_s)).bind(5, spec.step).bind(6, spec.node);
  insert->bind(7, spec.array_job_id).bind(8, spec.array_task_id).bind(9, spec.het_job_id);
  insert->bind(10, spec.het_offset).bind(11, spec.uid).bind(12, spec.job_name);
  insert->bind(13, spec.step_nodes).bind(14, spec.node_tasks).bind(15, spec.job_cpus);
  insert->bind(16, spec.step_cpus).bind(17, spec.job_memory_bytes);
  insert->bind(18, spec.step_memory_bytes).bind(19, last).bind(20, end).bind(21, spec.cpu_source);
  insert->bind(22, spec.io_source).bind(23, spec.io_reason).bind(24, spec.markers_dropped);
  const auto done = insert->run();
  REQUIRE_MESSAGE(done, (done ? "" : done.error()));
  return db.last_rowid();
}

inline void add_sample(Database& db, std::int64_t run, double time_s, Maybe cpu_ns,
                       Maybe memory_bytes, const std::string& kind = "tick", Maybe io_bytes = {}) {
  auto insert = db.prepare(
      "INSERT INTO sample(run_id, time_ns, kind, cpu_time_ns, memory_anon_bytes,"
      " io_read_call_bytes) VALUES(?,?,?,?,?,?)");
  REQUIRE(insert);
  insert->bind(1, run).bind(2, at(time_s)).bind(3, kind).bind(4, cpu_ns).bind(5, memory_bytes);
  REQUIRE(insert->bind(6, io_bytes).run());
}

/// Samples each second from begin to end, `cpus` CPUs busy all the time.
inline void add_samples(Database& db, std::int64_t run, double begin_s, double end_s, double cpus,
                        std::int64_t memory_bytes = 100 * kMiB) {
  for (int i = 0; begin_s + i <= end_s; ++i) {
    add_sample(db, run, begin_s + i, ns(i * cpus), memory_bytes, "tick", i * 1000);
  }
}

struct PhaseSpec {
  std::string path;
  double begin_s = 0;
  std::optional<double> end_s = {};
  std::optional<double> cpu_s = {};
  int task = 0;
  std::int64_t number = 1, depth = 0, count = 1;
  std::string scope = "task";
  std::uint32_t flags = 0;
  Maybe memory_peak_bytes = {};
  std::optional<double> wall_s = {};
};

inline void add_phase(Database& db, std::int64_t run, const PhaseSpec& spec) {
  auto insert = db.prepare(
      "INSERT INTO phase(run_id, scope, task, path, number, depth, count, threads, begin_ns,"
      " end_ns, wall_ns, cpu_time_ns, memory_peak_bytes, flags) VALUES(?,?,?,?,?,?,?,1,?,?,?,?,?,"
      "?)");
  REQUIRE(insert);
  Maybe end, cpu, wall;
  if (spec.end_s) end = at(*spec.end_s);
  if (spec.cpu_s) cpu = ns(*spec.cpu_s);
  if (spec.wall_s) wall = ns(*spec.wall_s);
  insert->bind(1, run).bind(2, spec.scope).bind(3, spec.task).bind(4, spec.path);
  insert->bind(5, spec.number).bind(6, spec.depth).bind(7, spec.count).bind(8, at(spec.begin_s));
  insert->bind(9, end).bind(10, wall).bind(11, cpu).bind(12, spec.memory_peak_bytes);
  REQUIRE(insert->bind(13, spec.flags).run());
}

inline void add_notice(Database& db, const std::string& node, const std::string& code,
                       const std::string& text, const std::string& step = "0",
                       std::int64_t job_id = 123, double time_s = 1) {
  auto insert = db.prepare(
      "INSERT INTO notice(cluster, job_id, restart_count, step, node, time_ns, code, text)"
      " VALUES('c1',?,0,?,?,?,?,?)");
  REQUIRE(insert);
  insert->bind(1, job_id).bind(2, step).bind(3, node).bind(4, at(time_s)).bind(5, code);
  REQUIRE(insert->bind(6, text).run());
}

struct JobSpec {
  std::int64_t job_id = 123, restart_count = 0;
  std::optional<double> submit_s = 0, begin_s = 0, end_s = 10;
  std::string state = "COMPLETED", cluster = "c1";
  Maybe array_job_id = {}, array_task_id = {}, het_job_id = {}, het_offset = {};
};

inline void add_job(Database& db, const JobSpec& spec) {
  auto insert = db.prepare(
      "INSERT INTO job(cluster, job_id, restart_count, submit_time, start_time, end_time, state,"
      " user, uid, name, source, seen_ns, requested_nodes, requested_cpus, array_job_id,"
      " array_task_id, het_job_id, het_offset)"
      " VALUES(?,?,?,?,?,?,?,'alice',1000,'solver','slurmdbd',0,2,8,?,?,?,?)");
  REQUIRE(insert);
  const auto whole = [](const std::optional<double>& s) {
    return s ? Maybe(kStartS + static_cast<std::int64_t>(*s)) : Maybe();
  };
  insert->bind(1, spec.cluster).bind(2, spec.job_id).bind(3, spec.restart_count);
  insert->bind(4, whole(spec.submit_s)).bind(5, whole(spec.begin_s)).bind(6, whole(spec.end_s));
  insert->bind(7, spec.state).bind(8, spec.array_job_id).bind(9, spec.array_task_id);
  const auto done = insert->bind(10, spec.het_job_id).bind(11, spec.het_offset).run();
  REQUIRE_MESSAGE(done, (done ? "" : done.error()));
}

/// An allocation of `spec`'s start with these nodes, 4 CPUs and 1000 MiB each.
inline void add_allocation(Database& db, const JobSpec& spec, const std::vector<std::string>& nodes,
                           double begin_s, std::optional<double> end_s,
                           const std::string& state = "COMPLETED") {
  const auto key = "'" + spec.cluster + "'," + std::to_string(spec.job_id) + "," +
                   std::to_string(kStartS + static_cast<std::int64_t>(*spec.submit_s)) + "," +
                   std::to_string(spec.restart_count) + "," +
                   std::to_string(kStartS + static_cast<std::int64_t>(begin_s));
  const auto end = end_s ? std::to_string(kStartS + static_cast<std::int64_t>(*end_s)) : "NULL";
  const auto count = std::to_string(nodes.size());
  run_sql(db, "INSERT INTO allocation VALUES(" + key + "," + end + ",'" + state + "','n'," + count +
                  "," + std::to_string(nodes.size() * 4) + "," +
                  std::to_string(static_cast<std::int64_t>(nodes.size()) * 1000 * kMiB) + ",NULL)");
  for (const auto& node : nodes) {
    std::string row = "INSERT INTO allocation_node VALUES(";
    row.append(key).append(",'").append(node).append("',4,").append(std::to_string(1000 * kMiB));
    run_sql(db, row + ")");
  }
}

/// A new cluster.db in a folder of its own.
class ClusterFixture {
 public:
  ClusterFixture() : db_(open_cluster(folder_ / "cluster.db")) { REQUIRE(db_); }
  Database& db() { return *db_; }
  const TempFolder& folder() const { return folder_; }
  std::string path() const { return folder_ / "cluster.db"; }

  std::vector<Timeline> load(const std::string& job) {
    auto selector = parse_job_selector(job);
    REQUIRE(selector);
    auto loaded = load_timelines(*db_, *selector);
    REQUIRE_MESSAGE(loaded, (loaded ? "" : loaded.error()));
    return std::move(*loaded);
  }
  std::string error_of(const std::string& job) {
    auto selector = parse_job_selector(job);
    REQUIRE(selector);
    auto loaded = load_timelines(*db_, *selector);
    return loaded ? "" : loaded.error();
  }

 private:
  TempFolder folder_;
  Result<Database> db_;
};

/// Makes a node.db as the recorder would.
/// A row of table `counter`; path "": the whole task.
struct CounterSpec {
  std::string path = "";
  std::int64_t number = 0;
  std::string event = "PAPI_TOT_INS";
  Maybe value = 1000;
  int task = 0;
  std::string scope = "task";
};
inline void add_counter(Database& db, std::int64_t run, const CounterSpec& spec) {
  auto insert = db.prepare("INSERT INTO counter VALUES(?,?,?,?,?,?,?,NULL,NULL)");
  REQUIRE(insert);
  insert->bind(1, run).bind(2, spec.scope).bind(3, spec.task).bind(4, spec.path);
  insert->bind(5, spec.number).bind(6, spec.event).bind(7, spec.value);
  REQUIRE(insert->run());
}

inline Database make_node_db(const std::string& path, const std::string& node) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  auto db = Database::open(path, Database::Mode::kCreate);
  REQUIRE(db);
  run_sql(*db, "PRAGMA journal_mode = WAL");
  run_sql(*db, std::string(kNodeSchema));
  REQUIRE(db->set_user_version(kSchemaVersion));
  run_sql(*db, "INSERT INTO meta VALUES('node', '" + node + "')");
  return std::move(*db);
}

inline const UsageRow* find_row(const std::vector<UsageRow>& rows, const std::string& name) {
  for (const auto& row : rows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}
inline const UsageRow& row_named(const std::vector<UsageRow>& rows, const char* name) {
  const UsageRow* row = find_row(rows, name);
  REQUIRE_MESSAGE(row != nullptr, ("no row " + std::string(name)));
  return *row;
}
inline bool says(const std::vector<std::string>& sentences, const std::string& part) {
  for (const auto& sentence : sentences) {
    if (sentence.find(part) != std::string::npos) return true;
  }
  return false;
}

}  // namespace sphase::testing
