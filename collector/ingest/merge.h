// Brings what a node recorded into cluster.db. Merging the same file again changes nothing; a run
// that was still going is brought up to date; rows that the node gave up meanwhile are kept.
#pragma once

#include <cstdint>
#include <string>

#include "collector/ingest/sources.h"
#include "common/sqlite_db.h"

namespace sphase {

struct MergeCount {
  std::int64_t runs = 0;     // in the file
  std::int64_t changed = 0;  // of these, new or with news
  std::int64_t rows = 0;     // samples, phases, … written
  std::string warning;       // "" or what could not be read
};

/// Merges one file in one transaction and notes it in table `source`, also when it failed.
/// A run is known by (cluster, job id, restart count, start, step, node), never by its run_id: two
/// files may hold the same run, and different runs have the same run_id in different files.
/// An older copy of a file never undoes what a newer one said.
Result<MergeCount> merge_file(Database& cluster, const SourceFile& file, std::int64_t now_ns);

/// Says in table `source` why nothing could be merged from `path`.
Status note_problem(Database& cluster, const std::string& path, const std::string& problem,
                    std::int64_t now_ns);

}  // namespace sphase
