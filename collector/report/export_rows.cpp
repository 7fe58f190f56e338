#include "collector/report/export_rows.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "collector/report/format.h"
#include "collector/timeline/stored_rows.h"

namespace sphase {
namespace {

using Json = nlohmann::ordered_json;
using Type = SegmentColumn::Type;

constexpr const char* kRunColumns = "run_id, cluster, job_id, restart_count, step, node";

bool may_be_sealed(const std::string& table) {
  return table == "sample" || table == "phase" || table == "counter";
}

/// Columns in front of those of the table; "run" has them itself, "notice" most of them.
std::string head_of(const std::string& table) {
  return table == "run" ? "" : table == "notice" ? "run_id" : kRunColumns;
}

Result<std::vector<std::string>> columns_of(Database& db, const std::string& table) {
  auto row = db.prepare("SELECT name FROM pragma_table_info(?) WHERE name <> 'run_id'");
  if (!row) return Error{row.error()};
  row->bind(1, table);
  std::vector<std::string> names;
  if (table == "run") names.emplace_back("run_id");
  while (row->step()) names.push_back(row->text(0));
  if (auto read = row->status(); !read) return Error{read.error()};
  return names;
}

/// One row of the output.
class Line {
 public:
  explicit Line(bool csv) : csv_(csv) {}

  void add(const std::string& name, const SegmentColumn* column, std::size_t row) {
    const bool known = column != nullptr && !column->is_null(row);
    const Type type = known ? column->type() : Type::kNull;
    if (csv_) {
      if (!text_.empty() || any_) text_ += ',';
      any_ = true;
      if (type == Type::kInteger) text_ += std::to_string(column->integer(row));
      if (type == Type::kReal) text_ += Json(column->real(row)).dump();
      if (type == Type::kText) text_ += csv_field(clean(column->text(row)));
      return;
    }
    Json& field = json_[name];
    if (type == Type::kInteger) field = column->integer(row);
    if (type == Type::kReal) field = column->real(row);
    if (type == Type::kText) field = column->text(row);
  }
  std::string end() const {
    return (csv_ ? text_ : json_.dump(-1, ' ', true, Json::error_handler_t::replace)) + '\n';
  }

 private:
  bool csv_, any_ = false;
  std::string text_;
  Json json_ = Json::object();
};

class Export {
 public:
  Export(Database& db, const ExportOptions& options,
         const std::function<bool(std::string_view)>& write)
      : db_(db), options_(options), write_(write) {}

  Status run() {
    auto columns = columns_of(db_, options_.table);
    if (!columns) return Error{columns.error()};
    columns_ = std::move(*columns);
    const std::string head = head_of(options_.table);
    if (!head.empty()) {
      auto query = db_.prepare("SELECT " + head + " FROM run WHERE run_id = ?");
      if (!query) return Error{query.error()};
      head_.emplace(std::move(*query));
    }
    if (options_.csv && !write_(titles())) return Done{};
    for (const std::int64_t run_id : options_.run_ids) {
      auto more = put_run(run_id);
      if (!more) return Error{more.error()};
      if (!*more) break;
    }
    return Done{};
  }

 private:
  std::string titles() {
    std::string line;
    for (int i = 0; head_ && i < head_->columns(); ++i) line += head_->name(i) + ',';
    for (const auto& name : columns_) line += name + ',';
    line.back() = '\n';
    return line;
  }

  Result<std::vector<Segment>> parts_of(std::int64_t run_id) {
    std::int64_t unreadable = 0;
    if (may_be_sealed(options_.table)) {
      auto stored = StoredRows::prepare(db_, options_.table);
      return stored ? stored->of_run(run_id, unreadable) : Error{stored.error()};
    }
    auto query = db_.prepare("SELECT * FROM " + options_.table + " WHERE run_id = ?");
    if (!query) return Error{query.error()};
    query->bind(1, run_id);
    auto rows = rows_of(*query, 0, std::numeric_limits<std::size_t>::max());
    if (!rows) return Error{rows.error()};
    std::vector<Segment> parts;
    parts.push_back(std::move(*rows));
    return parts;
  }

  /// False: nobody reads any more.
  Result<bool> put_run(std::int64_t run_id) {
    auto parts = parts_of(run_id);
    if (!parts) return Error{parts.error()};
    Segment head;
    if (head_) {
      auto row = rows_of(head_->bind(1, run_id), 0, 1);
      if (!row) return Error{row.error()};
      head = std::move(*row);
      if (auto done = head_->run(); !done) return Error{done.error()};
    }
    std::vector<RowAt> rows = rows_that_count(*parts, options_.table);
    if (options_.table == "sample") {
      std::stable_sort(rows.begin(), rows.end(), [&](const RowAt& a, const RowAt& b) {
        const auto time = [&](const RowAt& at) {
          return StoredColumn((*parts)[at.part], "time_ns").integer(at.row);
        };
        return time(a) < time(b);
      });
    }
    for (const auto& [part, row] : rows) {
      Line line(options_.csv);
      for (const auto& column : head.columns) line.add(column.name(), &column, 0);
      for (const auto& name : columns_) line.add(name, (*parts)[part].find(name), row);
      if (!write_(line.end())) return false;
    }
    return true;
  }

  Database& db_;
  const ExportOptions& options_;
  const std::function<bool(std::string_view)>& write_;
  std::vector<std::string> columns_;
  std::optional<Statement> head_;
};

}  // namespace

const std::vector<std::string>& exported_tables() {
  static const std::vector<std::string> kTables = {"run",   "task",      "sample", "phase",
                                                   "value", "attribute", "notice", "counter"};
  return kTables;
}

Status export_rows(Database& db, const ExportOptions& options,
                   const std::function<bool(std::string_view)>& write) {
  return Export(db, options, write).run();
}

}  // namespace sphase
