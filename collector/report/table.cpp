#include "collector/report/table.h"

#include <algorithm>

#include "collector/report/format.h"

namespace sphase {
namespace {

void pad(std::string& line, const std::string& cell, std::size_t columns, Table::Align align) {
  const std::string space(columns - std::min(columns, width(cell)), ' ');
  line += align == Table::Align::kRight ? space + cell : cell + space;
}

void finish(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + '\n';
}

}  // namespace

void Table::row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t most = width(columns_[i].title);
    for (const auto& row : rows_) most = std::max(most, width(row[i]));
    widths.push_back(most);
  }
  std::size_t others = 0;
  for (std::size_t i = 1; i + 1 < widths.size(); ++i) others += widths[i] + 2;
  constexpr std::size_t kLeast = 12;
  const std::size_t left = kWidth > others + kLeast + 2 ? kWidth - others - 2 : kLeast;
  widths.front() = std::min(widths.front(), left);
  return widths;
}

std::string Table::print() const {
  const auto columns = widths();
  std::string out;
  auto line_of = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t i = 0; i + 1 < columns.size(); ++i) {
      if (i > 0) line += "  ";
      const std::string cell = i == 0 ? shorten(cells[i], columns[i]) : cells[i];
      pad(line, cell, columns[i], columns_[i].align);
    }
    const std::string& last = cells.back();
    if (!last.empty() && width(line) + 2 + width(last) > kWidth) {
      finish(out, line);
      finish(out, wrap("    ^ " + last, 6));
    } else {
      finish(out, line + (last.empty() ? "" : "  " + last));
    }
  };
  std::vector<std::string> titles;
  for (const auto& column : columns_) titles.push_back(column.title);
  line_of(titles);
  for (const auto& row : rows_) line_of(row);
  return out;
}

std::string wrap(const std::string& text, std::size_t indent) {
  std::string out, line;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (width(line) + 1 + width(word) > Table::kWidth && width(line) > indent) {
      out += line + '\n';
      line = std::string(indent, ' ') + word;
    } else {
      if (at > 0) line += ' ';
      line += word;
    }
    at = end + 1;
  }
  return out + line;
}

}  // namespace sphase
