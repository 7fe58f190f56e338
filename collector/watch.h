// What `watch` decides between its rounds: how long to wait, and what is worth a line in the log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sphase {

/// "60", "60s", "5m" or "1h"; 1 s to 1 day. Unit of the result: s.
std::optional<std::int64_t> parse_interval(const std::string& text);

/// The wait after each round: the interval, doubled for each failure in a row up to a quarter of an
/// hour (or to the interval, where that is longer).
class Backoff {
 public:
  explicit Backoff(std::int64_t interval_s) : interval_s_(interval_s), wait_s_(interval_s) {}
  std::int64_t after(bool failed);

 private:
  std::int64_t interval_s_, wait_s_;
  bool failing_ = false;
};

/// Says a problem when it comes and when it goes, not in each round.
class ProblemLog {
 public:
  /// Lines to write after a round with these problems.
  std::vector<std::string> lines_for(const std::vector<std::string>& problems);

 private:
  static constexpr std::size_t kMost = 50;  // problems kept and told at one time
  std::set<std::string> open_;
};

}  // namespace sphase
