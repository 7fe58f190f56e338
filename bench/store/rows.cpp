// bench/store.py runs this: bytes per row and rows per second of node.db. Prints {KEY: number}.
//
// Every mix of rows goes through the recorder's own RunStore, as if second by second, into a new
// node.db; what is counted is the whole file after a checkpoint: rows, indexes, runs, free pages. A
// merge then brings it into a cluster.db, and from there all rows go one by one into another new
// node.db: the peer, the same rows unsealed. A row that did not come back makes the bench fail.
#include <stdlib.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <string>

#include "bench/bench_file.h"
#include "bench/bench_folder.h"
#include "bench/store/program.h"
#include "collector/cluster_db.h"
#include "collector/ingest/merge.h"
#include "collector/timeline/stored_rows.h"
#include "common/clock.h"
#include "common/segment_cell.h"
#include "spank/recorder/store/run_store.h"

namespace sphase {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;

template <typename T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error());
  return std::move(*result);
}

sphase_link_start link_start(const std::string& node_db, std::uint64_t job) {
  sphase_link_start start{};
  start.type = SPHASE_LINK_START;
  start.start_ns = static_cast<std::uint64_t>(epoch_ns());
  start.job_id = static_cast<std::uint32_t>(job);
  start.period_ns = kSecondNs;
  start.max_bytes = std::uint64_t{1} << 30;
  std::snprintf(start.cluster, sizeof(start.cluster), "bench");
  std::snprintf(start.node, sizeof(start.node), "n1");
  std::snprintf(start.step, sizeof(start.step), "0");
  std::snprintf(start.node_db, sizeof(start.node_db), "%s", node_db.c_str());
  return start;
}

/// The rows of one second of a run, `second` counted from 0.
using Second = std::function<Batch(Program&, std::int64_t second)>;

struct Mix {
  const char* table;
  std::vector<int> run_seconds;  // length of each run
  Second second;
};

/// Runs of 10 min, 1 h and 6 h as a node sees them over a day or two; the rows of one second each.
std::vector<int> runs(bool quick) {
  std::vector<int> seconds(quick ? 4 : 24, 600);
  seconds.insert(seconds.end(), quick ? 1 : 8, 3600);
  if (!quick) seconds.insert(seconds.end(), 2, 6 * 3600);
  return seconds;
}

Batch tick(Program& program, std::int64_t) {
  Batch batch;
  batch.samples.push_back(program.sample("tick", kSecondNs));
  return batch;
}

/// 20 markers a second, each with its sample.
Batch edges(Program& program, std::int64_t) {
  Batch batch;
  for (int i = 0; i < 20; ++i) batch.samples.push_back(program.sample("edge", kSecondNs / 20));
  batch.samples.back().kind = "tick";
  return batch;
}

/// solve/iterate of 10 ms, its halves, and once a second solve/output, of task 0 to 3 in turn.
Batch phases(Program& program, std::int64_t second) {
  Batch batch;
  const auto task = static_cast<std::uint32_t>(second % 4);
  const std::int64_t round = second / 4;
  for (std::int64_t i = 0; i < 96; ++i) {
    PhaseRow iterate = program.phase("solve/iterate", task, round * 96 + i + 1, 1, 10'000'000);
    batch.phases.push_back(iterate);
    PhaseRow halo = iterate;
    halo.path = "solve/iterate/halo";
    halo.depth = 2;
    halo.begin_ns = *iterate.end_ns - *iterate.wall_ns / 7;
    halo.wall_ns = *halo.end_ns - halo.begin_ns;
    halo.cpu->time_ns = *halo.wall_ns - iterate.cpu->time_ns % 20'000;
    batch.phases.push_back(halo);
  }
  batch.phases.push_back(program.phase("solve/output", task, round + 1, 1, 30'000'000));
  return batch;
}

struct Written {
  std::int64_t rows = 0;
  std::vector<double> commit_ms;
};

Written write(const std::string& node_db, const Mix& mix, int batch_seconds) {
  Written written;
  std::uint64_t job = 0;
  for (const int seconds : mix.run_seconds) {
    RunStore store(link_start(node_db, ++job));
    Program program(job, epoch_ns() - seconds * kSecondNs);
    for (int second = 0; second < seconds; second += batch_seconds) {
      RunState state;
      for (int i = second; i < std::min(second + batch_seconds, seconds); ++i) {
        Batch batch = mix.second(program, i);
        written.rows += static_cast<std::int64_t>(batch.size());
        store.add(std::move(batch));
      }
      state.last_ns = program.now_ns();
      if (second + batch_seconds >= seconds) state.end_ns = program.now_ns();
      const std::int64_t begun_ns = monotonic_ns();
      must(store.commit(state));
      written.commit_ms.push_back(static_cast<double>(monotonic_ns() - begun_ns) / 1e6);
    }
  }
  return written;
}

double bytes_of(const std::string& path) {
  auto db = must(Database::open(path, Database::Mode::kReadWrite));
  must(db.exec("PRAGMA wal_checkpoint(TRUNCATE)"));
  return static_cast<double>(std::filesystem::file_size(path));
}

/// One run's rows, sealed or not, as plain rows of `to`. How many.
std::int64_t copy_plain(Database& to, Database& cluster, const std::string& table,
                        std::int64_t run_id) {
  auto stored = must(StoredRows::prepare(cluster, table));
  std::int64_t unreadable = 0;
  const auto parts = must(stored.of_run(run_id, unreadable));
  const auto rows = rows_that_count(parts, table);
  if (rows.empty()) return 0;
  std::string sql = "INSERT INTO " + table + " VALUES(?";
  for (std::size_t i = 0; i < parts.front().columns.size(); ++i) sql += ",?";
  auto insert = must(to.prepare(sql + ")"));
  for (const auto& [part, row] : rows) {
    insert.bind(1, run_id);
    int at = 2;
    for (const auto& column : parts[part].columns) bind_cell(insert, at++, column, row);
    must(insert.run());
  }
  return static_cast<std::int64_t>(rows.size());
}

/// All rows of a merged cluster.db as plain rows of a new node.db. How many of `table`.
std::int64_t write_plain(const std::string& path, const std::string& cluster_path,
                         const std::string& table) {
  auto opened = must(open_node_db(path, std::int64_t{1} << 32));
  must(opened.db.exec("ATTACH '" + cluster_path + "' AS merged"));
  must(opened.db.exec("INSERT INTO main.run SELECT *, 0 FROM merged.run"));
  must(opened.db.exec("DETACH merged"));
  auto cluster = must(read_cluster(cluster_path));
  auto run = must(cluster.prepare("SELECT run_id FROM run"));
  auto transaction = must(Transaction::begin(opened.db));
  std::int64_t rows = 0;
  while (run.step()) rows += copy_plain(opened.db, cluster, table, run.integer(0));
  must(transaction.commit());
  return rows;
}

/// The compressed values alone, without SQLite. Rows per second.
double decode_rate(const std::string& path) {
  auto db = must(Database::open(path, Database::Mode::kReadOnly));
  auto query = must(db.prepare("SELECT data FROM segment"));
  std::vector<std::string> all;
  while (query.step()) all.push_back(query.text(0));
  std::size_t rows = 0;
  const std::int64_t begun_ns = monotonic_ns();
  for (const std::string& data : all) rows += must(decode_segment(data)).rows();
  return static_cast<double>(rows) * 1e9 / static_cast<double>(monotonic_ns() - begun_ns);
}

/// Reads every column of every plain row. Rows per second.
double plain_read_rate(const std::string& path, const std::string& table) {
  auto db = must(Database::open(path, Database::Mode::kReadOnly));
  auto query = must(db.prepare("SELECT * FROM " + table));
  std::int64_t rows = 0, sum = 0;
  const std::int64_t begun_ns = monotonic_ns();
  while (query.step()) {
    for (int i = 0; i < query.columns(); ++i) sum += query.integer(i);
    ++rows;
  }
  if (sum == 0) throw std::runtime_error("nothing was read");
  return static_cast<double>(rows) * 1e9 / static_cast<double>(monotonic_ns() - begun_ns);
}

struct Measured {
  double sealed_bytes = 0, plain_bytes = 0;  // per row
  double decode_rows_per_s = 0, merge_rows_per_s = 0, plain_read_rows_per_s = 0;
  double commit_p50_ms = 0, commit_max_ms = 0;
};

Measured measure(const Mix& mix) {
  const BenchFolder folder;
  const std::string node_db = folder.path + "/n1/node.db";
  Written written = write(node_db, mix, 1);
  const auto rows = static_cast<double>(written.rows);
  Measured out;
  out.commit_p50_ms = median(written.commit_ms);
  out.commit_max_ms = *std::max_element(written.commit_ms.begin(), written.commit_ms.end());
  out.sealed_bytes = bytes_of(node_db) / rows;
  const std::string cluster_path = folder.path + "/cluster.db";
  {
    auto cluster = must(open_cluster(cluster_path));
    const std::int64_t begun_ns = monotonic_ns();
    const auto merged = must(merge_file(cluster, {SourceFile::Kind::kNodeDb, node_db}, begun_ns));
    out.merge_rows_per_s = rows * 1e9 / static_cast<double>(monotonic_ns() - begun_ns);
    if (merged.rows != written.rows) throw std::runtime_error("rows were lost");
  }
  const std::string plain = folder.path + "/plain/node.db";
  if (write_plain(plain, cluster_path, mix.table) != written.rows) {
    throw std::runtime_error("rows came twice");
  }
  out.plain_bytes = bytes_of(plain) / rows;
  out.decode_rows_per_s = decode_rate(node_db);
  out.plain_read_rows_per_s = plain_read_rate(plain, mix.table);
  return out;
}

/// 1000 rows per commit, as a program with many markers has them. Rows per second.
double write_rate(const Mix& mix, int batch_seconds) {
  const BenchFolder folder;
  const Written written = write(folder.path + "/n1/node.db", mix, batch_seconds);
  const double ms = std::accumulate(written.commit_ms.begin(), written.commit_ms.end(), 0.0);
  return static_cast<double>(written.rows) * 1e3 / ms;
}

int run(bool quick) {
  const Mix ticks{"sample", runs(quick), tick};
  const Mix marked{"sample", std::vector<int>(quick ? 2 : 8, 600), edges};
  const Mix iterated{"phase", std::vector<int>(quick ? 2 : 8, 120), phases};
  const Measured samples = measure(ticks);
  const Measured edge_samples = measure(marked);
  const Measured markers = measure(iterated);
  std::vector<double> write_rates, read_rates, plain_rates, merge_rates;
  for (int round = 0; round < (quick ? 3 : 9); ++round) {
    write_rates.push_back(write_rate(marked, 50));
    const Measured again = measure(marked);
    read_rates.push_back(again.decode_rows_per_s);
    plain_rates.push_back(again.plain_read_rows_per_s);
    merge_rates.push_back(again.merge_rows_per_s);
  }
  const nlohmann::ordered_json figures = {
      {"bytes_per_sample", samples.sealed_bytes},
      {"plain_bytes_per_sample", samples.plain_bytes},
      {"bytes_per_edge_sample", edge_samples.sealed_bytes},
      {"plain_bytes_per_edge_sample", edge_samples.plain_bytes},
      {"bytes_per_marker", markers.sealed_bytes / 2},
      {"plain_bytes_per_marker", markers.plain_bytes / 2},
      {"rows_per_s_write", median(write_rates)},
      {"rows_per_s_read", median(read_rates)},
      {"plain_rows_per_s_read", median(plain_rates)},
      {"rows_per_s_merge", median(merge_rates)},
      {"commit_p50_ms", samples.commit_p50_ms},
      {"commit_max_ms", std::max(samples.commit_max_ms, markers.commit_max_ms)}};
  std::printf("%s\n", figures.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace sphase

int main(int argc, char** argv) {
  try {
    return sphase::run(argc > 1 && std::strcmp(argv[1], "--quick") == 0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench store: %s\n", error.what());
    return 1;
  }
}
