// bench/ingest.py runs this against a `sphase-collector serve`. Prints {KEY: number}.
//
//   nodes ship PORT SOCKET NODES SHIPMENTS SEGMENTS [TURN]
//     so many nodes at once, each with so many shipments of so many segments of 512 samples (all of
//     them different rows, and others for each TURN). Half of the nodes break their connection in
//     the middle of a shipment, half way through, and come back.
//   nodes idle PORT SOCKET CONNECTIONS
//     that many nodes that have nothing to say; prints a line when all are there, and holds them
//     until its stdin ends
//   nodes plain FILE ROWS
//     the limit: the same rows by SQLite alone, one INSERT each, in one transaction
#include <sys/resource.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bench/ingest/client.h"
#include "bench/store/program.h"
#include "common/clock.h"
#include "common/schema.h"
#include "common/segment_cell.h"
#include "common/sqlite_db.h"

namespace sphase {
namespace {

constexpr int kSegmentRows = 512;
constexpr std::int64_t kSecondNs = 1'000'000'000;

void add(SegmentColumn& column, const std::optional<std::int64_t>& value) {
  if (!value) return column.add_null();
  (void)column.add(*value);
}

/// Samples of one run as the recorder seals them.
Segment samples(Program& program) {
  Segment segment;
  for (const char* name :
       {"time_ns", "kind", "cpu_time_ns", "memory_current_bytes", "memory_anon_bytes",
        "memory_file_bytes", "memory_shmem_bytes", "memory_kernel_bytes", "memory_peak_bytes",
        "io_read_bytes", "io_write_bytes", "io_read_call_bytes", "io_write_call_bytes",
        "processes"}) {
    segment.columns.emplace_back(name);
  }
  for (int i = 0; i < kSegmentRows; ++i) {
    const SampleRow row = program.sample("tick", kSecondNs);
    auto& columns = segment.columns;
    (void)columns[0].add(row.time_ns);
    (void)columns[1].add(std::string_view(row.kind));
    std::size_t at = 2;
    for (const auto& value :
         {row.cpu_time_ns, row.memory.current, row.memory.anon, row.memory.file, row.memory.shmem,
          row.memory.kernel, row.memory.peak, std::optional(row.io->read_bytes),
          std::optional(row.io->write_bytes), std::optional(row.io->read_call_bytes),
          std::optional(row.io->write_call_bytes), row.processes}) {
      add(columns[at++], value);
    }
  }
  return segment;
}

Segment run_row(const std::string& node, std::int64_t job, std::int64_t start_ns) {
  Segment run;
  const auto text = [&](const char* name, const std::string& value) {
    (void)run.columns.emplace_back(name).add(std::string_view(value));
  };
  const auto number = [&](const char* name, std::int64_t value) {
    (void)run.columns.emplace_back(name).add(value);
  };
  text("cluster", "bench");
  number("job_id", job);
  number("restart_count", 0);
  number("start_ns", start_ns);
  text("step", "0");
  text("node", node);
  number("uid", 1000);
  number("period_ns", kSecondNs);
  text("sphase_version", "bench");
  number("last_ns", start_ns + 1);
  return run;
}

/// All that one node ships, made before the clock is started: [shipment], whole frames.
std::vector<std::string> frames_of(int node, const std::string& file_id, int shipments,
                                   int segments) {
  std::vector<std::string> frames;
  for (int i = 0; i < shipments; ++i) {
    const std::int64_t start_ns = epoch_ns() - 86'400 * kSecondNs + i;
    Program program(static_cast<std::uint64_t>(node * 1000 + i), start_ns);
    Shipment shipment;
    shipment.facts = {"n" + std::to_string(node), file_id, {}, {}};
    shipment.runs = run_row(shipment.facts.node, node * 1000 + i + 1, start_ns);
    shipment.change = i + 1;
    for (int j = 0; j < segments; ++j) {
      auto data = encode_segment(samples(program));
      if (!data) throw std::runtime_error(data.error());
      shipment.sealed.push_back({0, 0, program.now_ns(), std::move(*data)});
    }
    auto body = body_of(ShipHead{static_cast<std::uint64_t>(i + 1), {}}, shipment);
    if (!body) throw std::runtime_error(body.error());
    frames.push_back(frame_of(FrameType::kShip, *body));
  }
  return frames;
}

/// Ships everything. A node that is `cut` loses its connection in the middle of its middle frame.
void ship(int node, const std::string& file_id, const std::vector<std::string>& frames, bool cut,
          std::uint16_t port, const MungePlace& munge) {
  const std::string name = "n" + std::to_string(node);
  std::size_t next = 0;
  while (next < frames.size()) {
    Client client(port, munge, name, file_id);
    next = static_cast<std::size_t>(client.change());
    for (; next < frames.size(); ++next) {
      if (cut && next == frames.size() / 2) {
        cut = false;
        client.send(std::string_view(frames[next]).substr(0, frames[next].size() / 2));
        break;
      }
      client.send(frames[next]);
      client.receive(FrameType::kStored);
    }
  }
}

nlohmann::json run_ship(std::uint16_t port, const MungePlace& munge, int nodes, int shipments,
                        int segments, const std::string& turn) {
  const std::string file_id = "turn" + turn;
  std::vector<std::vector<std::string>> frames;
  std::size_t bytes = 0;
  for (int node = 0; node < nodes; ++node) {
    frames.push_back(frames_of(node, file_id, shipments, segments));
    for (const auto& frame : frames.back()) bytes += frame.size();
  }
  std::atomic<int> failed = 0;
  const std::int64_t begun_ns = monotonic_ns();
  std::vector<std::thread> threads;
  for (int node = 0; node < nodes; ++node) {
    threads.emplace_back([&, node] {
      try {
        ship(node, file_id, frames[static_cast<std::size_t>(node)], node % 2 == 1, port, munge);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "node %d: %s\n", node, error.what());
        ++failed;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  const double seconds = static_cast<double>(monotonic_ns() - begun_ns) / 1e9;
  const double rows = static_cast<double>(nodes) * shipments * segments * kSegmentRows;
  return {{"rows", rows},
          {"seconds", seconds},
          {"rows_per_s", rows / seconds},
          {"wire_mb_per_s", static_cast<double>(bytes) / seconds / 1e6},
          {"failed", failed.load()}};
}

nlohmann::json run_idle(std::uint16_t port, const MungePlace& munge, int count) {
  const rlimit limit{static_cast<rlim_t>(count) + 100, static_cast<rlim_t>(count) + 100};
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) throw std::runtime_error("too few descriptors");
  std::vector<Client> clients;
  clients.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i)
    clients.emplace_back(port, munge, "i" + std::to_string(i), "idle");
  std::printf("ready\n");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return {{"connections", count}};
}

nlohmann::json run_plain(const std::string& path, std::int64_t rows) {
  auto db = Database::open(path, Database::Mode::kCreate);
  if (!db) throw std::runtime_error(db.error());
  auto made = db->exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
  if (made) made = db->exec(std::string(kNodeSchema));
  if (!made) throw std::runtime_error(made.error());
  // Made before the clock is started, as the frames of the nodes are.
  std::vector<Segment> segments;
  Program program(1, epoch_ns() - 86'400 * kSecondNs);
  for (std::int64_t i = 0; i * kSegmentRows < rows; ++i) segments.push_back(samples(program));
  if (auto run =
          db->exec("INSERT INTO run(cluster, job_id, restart_count, start_ns, step, node, uid,"
                   " period_ns, sphase_version) VALUES('b',1,0,1,'0','n',1,1,'b')");
      !run) {
    throw std::runtime_error(run.error());
  }
  const std::int64_t begun_ns = monotonic_ns();
  {
    auto transaction = Transaction::begin(*db);
    auto insert = db->prepare("INSERT INTO sample VALUES(1,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    if (!transaction || !insert) throw std::runtime_error("cannot insert");
    for (const Segment& segment : segments) {
      for (std::size_t row = 0; row < segment.rows(); ++row) {
        int at = 1;
        for (const auto& column : segment.columns) bind_cell(*insert, at++, column, row);
        if (auto done = insert->run(); !done) throw std::runtime_error(done.error());
      }
    }
    if (auto done = transaction->commit(); !done) throw std::runtime_error(done.error());
  }
  const double seconds = static_cast<double>(monotonic_ns() - begun_ns) / 1e9;
  const auto count = static_cast<double>(segments.size() * kSegmentRows);
  return {{"rows", count}, {"rows_per_s", count / seconds}};
}

int run(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  nlohmann::json result;
  if (what == "ship" && argc >= 7) {
    result = run_ship(static_cast<std::uint16_t>(std::atoi(argv[2])), {argv[3]}, std::atoi(argv[4]),
                      std::atoi(argv[5]), std::atoi(argv[6]), argc > 7 ? argv[7] : "0");
  } else if (what == "idle" && argc == 5) {
    result =
        run_idle(static_cast<std::uint16_t>(std::atoi(argv[2])), {argv[3]}, std::atoi(argv[4]));
  } else if (what == "plain" && argc == 4) {
    result = run_plain(argv[2], std::atoll(argv[3]));
  } else {
    std::fprintf(stderr, "usage: see the head of bench/ingest/nodes.cpp\n");
    return 2;
  }
  std::printf("%s\n", result.dump().c_str());
  return result.value("failed", 0) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace sphase

int main(int argc, char** argv) {
  try {
    return sphase::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nodes: %s\n", error.what());
    return 1;
  }
}
