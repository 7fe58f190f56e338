#include "collector/report/table.h"

#include <doctest/doctest.h>

#include <sstream>

#include "collector/report/format.h"

using namespace sphase;

namespace {

Table table() {
  Table table;
  table.column("name", Table::Align::kLeft);
  table.column("n", Table::Align::kRight);
  table.column("", Table::Align::kLeft);
  return table;
}

}  // namespace

TEST_CASE("names stand to the left and numbers to the right") {
  Table lines = table();
  lines.row({"größer", "5"});
  lines.row({"b", "123", "note"});
  CHECK(lines.print() == "name      n\ngrößer    5\nb       123  note\n");
}

TEST_CASE("no line is longer than 100 columns") {
  Table lines = table();
  lines.row({std::string(300, 'x'), "12345", std::string(60, 'y')});
  lines.row({"short", "1", "words that do not fit " + std::string(90, 'z') + " and more words"});
  std::istringstream printed(lines.print());
  for (std::string line; std::getline(printed, line);) CHECK(width(line) <= Table::kWidth);
}

TEST_CASE("text is broken between words, with an indent") {
  const std::string words = "word " + std::string(94, 'a') + " tail end";
  CHECK(wrap(words, 2) == "word " + std::string(94, 'a') + "\n  tail end");
  CHECK(wrap("short", 4) == "short");
  CHECK(wrap("", 4).empty());
  CHECK(wrap("  - kept indent", 4) == "  - kept indent");
}
