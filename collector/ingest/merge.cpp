#include "collector/ingest/merge.h"

#include <fstream>

#include "collector/ingest/node_reader.h"
#include "collector/ingest/store.h"
#include "common/note_file.h"

namespace sphase {
namespace {

Status write_source(Database& cluster, const std::string& path, const NodeFacts& facts,
                    std::int64_t runs, const std::string& problem, std::int64_t now_ns) {
  auto write = cluster.prepare(
      "INSERT OR REPLACE INTO source(path, node, merged_ns, runs, rows_deleted, damaged, problem)"
      " VALUES(?,nullif(?,''),?,?,?,?,nullif(?,''))");
  if (!write) return Error{write.error()};
  return write->bind(1, path)
      .bind(2, facts.node)
      .bind(3, now_ns)
      .bind(4, runs)
      .bind(5, facts.rows_deleted)
      .bind(6, facts.damaged)
      .bind(7, problem)
      .run();
}

/// What could not be read or kept, a sentence; "" for nothing.
std::string warning_of(const StoreCount& count, const NodeReader& reader) {
  std::string warning;
  if (count.damaged > 0) {
    warning =
        std::to_string(count.damaged) +
        " segments could not be read, their rows are missing; the first: " + count.first_damage;
  }
  const std::int64_t refused = count.refused + reader.values_refused();
  if (refused == 0) return warning;
  if (!warning.empty()) warning += "; ";
  return warning + std::to_string(refused) + " rows are not what their tables allow";
}

Result<MergeCount> merge_batches(Database& cluster, sqlite3* node, NodeFacts& facts) {
  Store store(cluster);
  auto reader =
      NodeReader::prepare(node, -1, [&](const RunName& name) { return store.seen(name); });
  if (!reader) return Error{reader.error()};
  for (;;) {
    auto shipment = reader->next();
    if (!shipment) return Error{shipment.error()};
    if (!*shipment) break;
    if (auto put = store.put(**shipment); !put) return Error{put.error()};
    facts = (*shipment)->facts;
  }
  const StoreCount& count = store.count();
  return MergeCount{reader->runs(), count.changed, count.rows, warning_of(count, *reader)};
}

Result<MergeCount> merge_node_db(Database& cluster, const std::string& path, std::int64_t now_ns) {
  auto node = open_source_db(path);
  if (!node) return Error{node.error()};
  auto transaction = Transaction::begin(cluster);
  if (!transaction) return Error{transaction.error()};
  NodeFacts facts;
  auto merged = merge_batches(cluster, node->raw.get(), facts);
  if (!merged) return Error{path + " could not be read: " + merged.error()};
  if (!merged->warning.empty()) merged->warning = path + ": " + merged->warning;
  if (!node->warning.empty() && !merged->warning.empty()) merged->warning += "; ";
  merged->warning += node->warning;
  auto written = write_source(cluster, path, facts, merged->runs, merged->warning, now_ns);
  if (written) written = transaction->commit();
  if (!written) return Error{written.error()};
  return merged;
}

Result<MergeCount> merge_note(Database& cluster, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return errno_error("cannot open " + path);
  std::string bytes(4096, '\0');  // notes are at most 1 KiB
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  const auto note = parse_note(bytes);
  if (!note) return Error{path + " is not a note, or is cut short"};
  auto insert = cluster.prepare(
      "INSERT OR IGNORE INTO notice(cluster, job_id, restart_count, step, node, time_ns, code, "
      "text)"
      " VALUES(?,?,?,?,?,?,?,?)");
  if (!insert) return Error{insert.error()};
  auto written = insert->bind(1, note->cluster)
                     .bind(2, note->job_id)
                     .bind(3, note->restart_count)
                     .bind(4, note->step)
                     .bind(5, note->node)
                     .bind(6, note->time_ns)
                     .bind(7, note->code)
                     .bind(8, note->text)
                     .run();
  if (!written) return Error{written.error()};
  MergeCount count;
  count.rows = cluster.changes();
  return count;
}

}  // namespace

Status note_problem(Database& cluster, const std::string& path, const std::string& problem,
                    std::int64_t now_ns) {
  return write_source(cluster, path, {}, 0, problem, now_ns);
}

Result<MergeCount> merge_file(Database& cluster, const SourceFile& file, std::int64_t now_ns) {
  auto merged = file.kind == SourceFile::Kind::kNote ? merge_note(cluster, file.path)
                                                     : merge_node_db(cluster, file.path, now_ns);
  if (merged) return merged;
  if (auto noted = note_problem(cluster, file.path, merged.error(), now_ns); !noted) {
    return Error{merged.error() + "; and " + noted.error()};
  }
  return merged;
}

}  // namespace sphase
