// When each daemon may be asked again, and what is to be said about it. No clock, no I/O, no
// thread of its own: whoever polls gives the time (ns, any clock that does not jump) and asks
// `due` before each question.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sphase {

enum class Daemon { kSlurmctld, kSlurmdbd };

/// At most one question per `every_s` to each daemon. After the n-th failure in a row it waits
/// every_s * 2^n, at most longest_s, the upper half of that at random, so that many collectors do
/// not come back to a daemon at one time.
class RecordPoller {
 public:
  struct Times {
    std::int64_t every_s = 60, longest_s = 900;
  };
  /// `random`: in [0, 1); nullptr: a generator of its own.
  explicit RecordPoller(Times times, std::function<double()> random = nullptr);

  bool due(Daemon daemon, std::int64_t now_ns) const;
  void answered(Daemon daemon, std::int64_t now_ns);
  void failed(Daemon daemon, const std::string& why, std::int64_t now_ns);

  /// When the first of them is due; in the past: now.
  std::int64_t next_ns() const;

  /// A sentence for each daemon that is away, the same in each round until it is back.
  std::vector<std::string> problems() const;
  /// What is new since the last call: a line when a daemon goes away, one when it is back.
  std::vector<std::string> take_news();

 private:
  struct State {
    std::optional<std::int64_t> asked_ns;  // nullopt: never
    std::int64_t wait_ns = 0;              // from there to the next question
    int failures = 0;                      // in a row
    std::int64_t away_ns = 0;              // first of them
    std::string why;                       // of the first of them
  };
  State& state(Daemon daemon) { return states_.at(static_cast<std::size_t>(daemon)); }
  const State& state(Daemon daemon) const { return states_.at(static_cast<std::size_t>(daemon)); }
  std::int64_t wait_after(int failures);

  Times times_;
  std::function<double()> random_;
  std::array<State, 2> states_;
  std::vector<std::string> news_;
};

}  // namespace sphase
