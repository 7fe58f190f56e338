#include "collector/ingest/merge_all.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <set>

#include "collector/ingest/merge.h"
#include "common/clock.h"

namespace sphase {
namespace {

void put_stamp(const std::string& path, std::int64_t& time_ns, std::int64_t& bytes) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return;
  time_ns = found.st_mtim.tv_sec * std::int64_t{1'000'000'000} + found.st_mtim.tv_nsec;
  bytes = found.st_size;
}

/// An unchanged file was looked at too: from the silence since then follows which runs are lost.
Status note_looked(Database& cluster, const std::string& path, std::int64_t now_ns) {
  auto write = cluster.prepare("UPDATE source SET merged_ns = ? WHERE path = ?");
  if (!write) return Error{write.error()};
  return write->bind(1, now_ns).bind(2, path).run();
}

void merge_one(Database& cluster, const SourceFile& file, MergeOutcome& outcome) {
  auto merged = merge_file(cluster, file, epoch_ns());
  if (!merged) {
    outcome.problems.push_back(merged.error());
    return;
  }
  ++outcome.files;
  outcome.runs += merged->runs;
  outcome.changed += merged->changed;
  outcome.rows += merged->rows;
  if (!merged->warning.empty()) outcome.problems.push_back(merged->warning);
}

/// True if this database was never merged into: it is new, or another one than in the last round.
bool never_merged(Database& cluster) {
  auto row = cluster.prepare("SELECT 1 FROM source LIMIT 1");
  return row && !row->step() && row->status();
}

Status merge_files(Database& cluster, const std::vector<SourceFile>& files, MergeOutcome& outcome,
                   MergedFiles* known, const std::function<bool()>& stop) {
  std::vector<std::string> unchanged;
  if (known != nullptr && never_merged(cluster)) known->clear();
  for (const auto& file : files) {
    if (stop && stop()) break;
    if (known != nullptr && known->same(file.path)) {
      unchanged.push_back(file.path);
      continue;
    }
    if (known != nullptr) known->look(file.path);
    const std::size_t before = outcome.problems.size();
    merge_one(cluster, file, outcome);
    if (known != nullptr && outcome.problems.size() == before) known->remember(file.path);
  }
  if (known != nullptr) known->keep(files);
  outcome.unchanged += static_cast<std::int64_t>(unchanged.size());
  if (unchanged.empty()) return Done{};
  auto transaction = Transaction::begin(cluster);
  if (!transaction) return Error{transaction.error()};
  for (const auto& path : unchanged) {
    if (auto noted = note_looked(cluster, path, epoch_ns()); !noted) return noted;
  }
  return transaction->commit();
}

}  // namespace

std::string sentence_of(const MergeOutcome& outcome) {
  return fmt::format(
      "{} files, {} runs, {} of them new or with news, {} rows written, {} records of jobs",
      outcome.files, outcome.runs, outcome.changed, outcome.rows, outcome.records);
}

MergedFiles::Stamp MergedFiles::stamp_of(const std::string& path) {
  Stamp stamp;
  put_stamp(path, stamp.time_ns, stamp.bytes);
  put_stamp(path + "-wal", stamp.wal_time_ns, stamp.wal_bytes);
  return stamp;
}

bool MergedFiles::same(const std::string& path) const {
  const auto found = merged_.find(path);
  return found != merged_.end() && found->second == stamp_of(path);
}

void MergedFiles::keep(const std::vector<SourceFile>& files) {
  std::set<std::string> there;
  for (const auto& file : files) there.insert(file.path);
  std::erase_if(merged_, [&](const auto& entry) { return !there.contains(entry.first); });
}

void MergedFiles::look(const std::string& path) { looked_ = stamp_of(path); }

void MergedFiles::remember(const std::string& path) { merged_[path] = looked_; }

void merge_path(Database& cluster, const std::string& path, MergeOutcome& outcome,
                MergedFiles* known, const std::function<bool()>& stop) {
  auto files = find_sources(path);
  if (!files) {
    outcome.problems.push_back(files.error());
    if (auto noted = note_problem(cluster, path, files.error(), epoch_ns()); !noted) {
      outcome.problems.push_back(noted.error());
    }
    return;
  }
  if (files->empty()) {
    outcome.warnings.push_back("nothing to merge in " + path + " (searched three levels deep)");
  }
  auto merged = merge_files(cluster, *files, outcome, known, stop);
  if (!merged) outcome.problems.push_back(merged.error());
}

}  // namespace sphase
