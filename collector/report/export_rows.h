// Rows of one table of cluster.db as CSV or JSON lines, sealed or not.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/sqlite_db.h"

namespace sphase {

struct ExportOptions {
  std::string table;                  // one of exported_tables()
  std::vector<std::int64_t> run_ids;  // only rows of these; in this order
  bool csv = false;                   // else a JSON object per line
};

/// "run", "task", "sample", "phase", "value", "attribute", "notice", "counter".
const std::vector<std::string>& exported_tables();

/// Writes every row that counts, each with the cluster, job, start, step and node of its run before
/// its own columns, which are those of common/schema: units are in the names. NULL is an empty
/// field or null. `write` returns false to stop. Memory: the rows of one run.
Status export_rows(Database& db, const ExportOptions& options,
                   const std::function<bool(std::string_view)>& write);

}  // namespace sphase
