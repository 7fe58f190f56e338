#include "collector/records/record_poller.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <random>

namespace sphase {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr int kMostDoublings = 20;

const char* name_of(Daemon daemon) {
  return daemon == Daemon::kSlurmctld ? "slurmctld" : "slurmdbd";
}

std::function<double()> own_random() {
  auto engine = std::make_shared<std::mt19937>(std::random_device()());
  return [engine] { return std::uniform_real_distribution<double>(0, 1)(*engine); };
}

}  // namespace

RecordPoller::RecordPoller(Times times, std::function<double()> random)
    : times_(times), random_(random ? std::move(random) : own_random()) {
  times_.longest_s = std::max(times_.longest_s, times_.every_s);
}

bool RecordPoller::due(Daemon daemon, std::int64_t now_ns) const {
  const State& its = state(daemon);
  // A time before the last question: the clock was set back.
  return !its.asked_ns || now_ns < *its.asked_ns || now_ns - *its.asked_ns >= its.wait_ns;
}

std::int64_t RecordPoller::wait_after(int failures) {
  std::int64_t wait_s = times_.every_s;
  for (int i = 0; i < std::min(failures, kMostDoublings) && wait_s < times_.longest_s; ++i) {
    wait_s *= 2;
  }
  wait_s = std::min(wait_s, times_.longest_s);
  if (failures == 0) return wait_s * kSecond;
  const double part = 0.5 + 0.5 * random_();
  const auto jittered = static_cast<std::int64_t>(part * static_cast<double>(wait_s * kSecond));
  return std::max(jittered, times_.every_s * kSecond);
}

void RecordPoller::answered(Daemon daemon, std::int64_t now_ns) {
  State& its = state(daemon);
  if (its.failures > 0) {
    news_.push_back(fmt::format("{} is back after {} s", name_of(daemon),
                                std::max<std::int64_t>(0, now_ns - its.away_ns) / kSecond));
  }
  its = State{now_ns, wait_after(0), 0, 0, {}};
}

void RecordPoller::failed(Daemon daemon, const std::string& why, std::int64_t now_ns) {
  State& its = state(daemon);
  if (its.failures++ == 0) {
    its.away_ns = now_ns;
    its.why = why;
    news_.push_back(fmt::format("{}; asked again, at most every {} s", why, times_.longest_s));
  }
  its.asked_ns = now_ns;
  its.wait_ns = wait_after(its.failures);
}

std::int64_t RecordPoller::next_ns() const {
  std::int64_t next = std::numeric_limits<std::int64_t>::max();
  for (const State& its : states_) {
    next = std::min(next, its.asked_ns ? *its.asked_ns + its.wait_ns : 0);
  }
  return next;
}

std::vector<std::string> RecordPoller::problems() const {
  std::vector<std::string> problems;
  for (const State& its : states_) {
    if (its.failures > 0) problems.push_back(its.why);
  }
  return problems;
}

std::vector<std::string> RecordPoller::take_news() {
  std::vector<std::string> news;
  news.swap(news_);
  return news;
}

}  // namespace sphase
