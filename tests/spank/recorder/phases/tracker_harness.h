// Drives a PhaseTracker as programs would, and keeps the last row of each instance as the store
// does.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/vocabulary.h"
#include "spank/recorder/phases/phase_tracker.h"

namespace sphase::testing {

class TrackerHarness {
 public:
  using Key = std::tuple<bool, std::uint32_t, std::string, std::int64_t>;

  static StreamId thread(std::uint32_t tid, std::uint32_t task = 0, std::uint32_t client = 1) {
    return {false, task, client, tid};
  }
  static StreamId shell(std::uint32_t task = 0) { return {true, task, 0, 0}; }
  static Edge at(std::int64_t time_ns) {
    Edge edge;
    edge.time_ns = time_ns;
    edge.client = 1;
    return edge;
  }
  void begin(const StreamId& id, std::string_view name, std::int64_t time_ns) {
    tracker.begin(id, name, -1, false, at(time_ns));
  }
  void end(const StreamId& id, std::string_view name, std::int64_t time_ns) {
    tracker.end(id, name, -1, false, at(time_ns));
  }

  /// Takes new rows over, as INSERT OR REPLACE does. Returns how many there were.
  std::size_t take(std::int64_t now_ns, bool last = false) {
    auto fresh = tracker.take_rows(now_ns, last);
    for (PhaseRow& row : fresh) {
      rows.insert_or_assign(Key{row.shell, row.task, row.path, row.number}, row);
    }
    return fresh.size();
  }
  /// The row of one instance; an empty one if there is none.
  PhaseRow row(const std::string& path, std::int64_t number = 1, std::uint32_t task = 0,
               bool in_shell = false) {
    const auto found = rows.find(Key{in_shell, task, path, number});
    return found == rows.end() ? PhaseRow{} : found->second;
  }
  std::size_t count_of(const std::string& path) const {
    std::size_t count = 0;
    for (const auto& [key, row] : rows) count += row.path == path ? 1 : 0;
    return count;
  }
  int notices_of(std::string_view code) const {
    int count = 0;
    for (const auto& [word, text] : notices) count += word == code ? 1 : 0;
    return count;
  }

  std::vector<std::pair<std::string, std::string>> notices;
  PhaseTracker tracker{[this](std::string_view code, std::string text) {
    notices.emplace_back(std::string(code), std::move(text));
  }};
  std::map<Key, PhaseRow> rows;
};

}  // namespace sphase::testing
