// Columns aligned for a terminal.
#pragma once

#include <string>
#include <vector>

namespace sphase {

class Table {
 public:
  enum class Align { kLeft, kRight };
  static constexpr std::size_t kWidth = 100;  // of a line

  void column(std::string title, Align align) { columns_.push_back({std::move(title), align}); }
  /// One cell per column; fewer are filled up with empty ones. The last column is free text: where
  /// it does not fit behind the others, it goes on a line of its own.
  void row(std::vector<std::string> cells);
  /// The first column is cut to what the others leave of the line.
  std::string print() const;
  bool empty() const { return rows_.empty(); }

 private:
  struct Column {
    std::string title;
    Align align;
  };
  std::vector<std::size_t> widths() const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// Breaks text between words into lines of at most kWidth; later lines are indented by `indent`.
std::string wrap(const std::string& text, std::size_t indent);

}  // namespace sphase
