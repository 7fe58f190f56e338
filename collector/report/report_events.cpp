// The table of counted events in a text report.
#include <fmt/format.h>

#include <algorithm>

#include "collector/page/flag_words.h"
#include "collector/report/format.h"
#include "collector/report/report_print.h"
#include "collector/report/table.h"

namespace sphase {
namespace {

using Align = Table::Align;

std::string two_digits(double value) { return fmt::format("{:.2f}", value); }

constexpr std::string_view kInRatios[] = {"PAPI_TOT_INS",       "PAPI_TOT_CYC", "PAPI_L3_TCM",
                                          "perf::CACHE-MISSES", "PAPI_FP_OPS",  "PAPI_DP_OPS"};

/// Events that stand for themselves: those of the ratios are left out.
std::vector<std::string> other_events(const std::vector<UsageRow>& rows) {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> names;
  for (const auto& row : rows) {
    for (const auto& event : row.events.events()) {
      const bool shown = std::find(std::begin(kInRatios), std::end(kInRatios), event.name) !=
                             std::end(kInRatios) ||
                         std::find(names.begin(), names.end(), event.name) != names.end();
      if (shown) continue;
      if (names.size() < kMost) names.push_back(event.name);
    }
  }
  return names;
}

}  // namespace

std::string event_table(const std::vector<UsageRow>& rows) {
  const auto none = [](const UsageRow& row) { return row.events.empty(); };
  if (std::all_of(rows.begin(), rows.end(), none)) return "";
  Table table;
  table.column("events", Align::kLeft);
  for (const char* title : {"instr", "IPC", "miss/ki", "GFLOP/s"}) {
    table.column(title, Align::kRight);
  }
  const auto others = other_events(rows);
  for (const auto& name : others) table.column(clean(name), Align::kRight);
  table.column("", Align::kLeft);
  for (const auto& row : rows) {
    if (none(row)) continue;
    std::vector<std::string> cells = {phase_name(row),
                                      or_dash(row.events.instructions(), format_count),
                                      or_dash(row.events.instructions_per_cycle(), two_digits),
                                      or_dash(row.events.misses_per_kilo_instruction(), two_digits),
                                      or_dash(row.events.gflops(row.time_ns), two_digits)};
    for (const auto& name : others) cells.push_back(or_dash(row.events.count(name), format_count));
    cells.push_back(words_of(row.flags & (kSomeCounted | kScaled | kFolded)));
    table.row(cells);
  }
  return '\n' + table.print() + '\n' +
         wrap(
             "instr instructions in user mode · IPC instructions per cycle · miss/ki last-level "
             "cache misses per 1000 instructions · GFLOP/s 10⁹ floating-point operations per "
             "second of all tasks",
             2) +
         '\n';
}

}  // namespace sphase
