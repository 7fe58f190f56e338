#include "collector/page/steps.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace sphase {
namespace {

constexpr std::int64_t kUsualTickNs = 4'000'000;
/// CPU time of each busy CPU is known to a tick: over ten of them that is a tenth of a CPU.
constexpr std::int64_t kTicksTogether = 10;

std::int64_t shortest_look_ns(const Run& run) {
  return kTicksTogether * run.tick_ns.value_or(kUsualTickNs);
}

/// A distance between samples from which on something is missing; nullopt: no period is known.
Maybe longest_pause_ns(const Run& run) {
  if (!run.period_ns || *run.period_ns <= 0) return std::nullopt;
  return *run.period_ns * 5 / 2;
}

bool is_gap(const Maybe& longest_ns, std::int64_t from_ns, std::int64_t to_ns) {
  return longest_ns && to_ns - from_ns > *longest_ns;
}

/// Cuts the samples of a run into stretches, each long enough to divide by.
class BusySteps {
 public:
  explicit BusySteps(const Run& run)
      : least_ns_(shortest_look_ns(run)), pause_ns_(longest_pause_ns(run)) {}

  void see(const Sample& sample) {
    if (!sample.cpu_time_ns) return forget();
    if (last_ != nullptr && is_gap(pause_ns_, last_->time_ns, sample.time_ns)) forget();
    if (from_ == nullptr) {
      from_ = last_ = &sample;
      return;
    }
    last_ = &sample;
    if (sample.time_ns - from_->time_ns >= least_ns_) close();
  }

  Steps end() {
    forget();
    return std::move(out_);
  }

 private:
  void close() {
    const auto time = static_cast<double>(last_->time_ns - from_->time_ns);
    const auto used = static_cast<double>(*last_->cpu_time_ns - *from_->cpu_time_ns);
    out_.push_back({from_->time_ns, std::max(0.0, used) / time});
    before_ = from_;
    from_ = last_;
  }

  /// A rest that is too short joins the stretch before it. Then: not known.
  void forget() {
    if (from_ == nullptr) return;
    if (last_->time_ns > from_->time_ns) {
      if (before_ != nullptr) {
        out_.pop_back();
        from_ = before_;
      }
      close();
    }
    out_.push_back({last_->time_ns, std::nullopt});
    from_ = last_ = before_ = nullptr;
  }

  std::int64_t least_ns_;
  Maybe pause_ns_;
  const Sample *from_ = nullptr, *last_ = nullptr, *before_ = nullptr;
  Steps out_;
};

struct Change {
  std::int64_t time_ns;
  std::uint32_t steps, point;  // indices
};

std::vector<Change> changes_of(const std::vector<const Steps*>& all) {
  std::size_t count = 0;
  for (const Steps* steps : all) count += steps->size();
  std::vector<Change> changes;
  changes.reserve(count);
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    for (std::uint32_t k = 0; k < all[i]->size(); ++k) {
      changes.push_back({(*all[i])[k].time_ns, i, k});
    }
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.time_ns < b.time_ns; });
  return changes;
}

/// Where one of the summands is.
struct Part {
  bool begun = false, ended = false;
  std::optional<double> value;

  bool hidden() const { return begun && !ended && !value; }
};

class Total {
 public:
  void replace(Part& part, const Part& next) {
    known_ = known_ + (next.value ? 1 : 0) - (part.value ? 1 : 0);
    hidden_ = hidden_ + (next.hidden() ? 1 : 0) - (part.hidden() ? 1 : 0);
    sum_ += next.value.value_or(0) - part.value.value_or(0);
    if (known_ == 0) sum_ = 0;  // no rest of rounding
    part = next;
  }
  std::optional<double> value(Unknown unknown) const {
    if (known_ == 0 || (hidden_ > 0 && unknown == Unknown::kHidden)) return std::nullopt;
    return std::max(0.0, sum_);
  }

 private:
  double sum_ = 0;
  std::size_t known_ = 0, hidden_ = 0;
};

/// Indices of what draws a part of the time: see thin().
class Drawn {
 public:
  void see(const Steps& steps, std::size_t i) {
    if (!any_) first_ = i;
    any_ = true;
    last_ = i;
    const auto& value = steps[i].value;
    if (!value) {
      if (!unknown_) unknown_ = i;
      return;
    }
    if (!most_ || *value > *steps[*most_].value) most_ = i;
    if (!least_ || *value < *steps[*least_].value) least_ = i;
  }

  void take(const Steps& steps, Steps& out) {
    if (!any_) return;
    std::array<std::size_t, kThinBucket> kept = {
        first_, last_, most_.value_or(first_), least_.value_or(first_), unknown_.value_or(first_)};
    std::sort(kept.begin(), kept.end());
    const auto* const end = std::unique(kept.begin(), kept.end());
    for (const auto* i = kept.begin(); i != end; ++i) out.push_back(steps[*i]);
    *this = {};
  }

 private:
  bool any_ = false;
  std::size_t first_ = 0, last_ = 0;
  std::optional<std::size_t> most_, least_, unknown_;
};

}  // namespace

Steps cpus_busy(const Run& run) {
  BusySteps steps(run);
  for (const auto& sample : run.samples.samples()) steps.see(sample);
  return steps.end();
}

Steps memory_of(const Run& run) {
  Steps out;
  const auto pause_ns = longest_pause_ns(run);
  const Sample* last = nullptr;
  for (const auto& sample : run.samples.samples()) {
    if (last != nullptr && is_gap(pause_ns, last->time_ns, sample.time_ns)) {
      out.push_back({last->time_ns + *run.period_ns, std::nullopt});
    }
    std::optional<double> bytes;
    if (sample.memory_bytes) bytes = static_cast<double>(*sample.memory_bytes);
    out.push_back({sample.time_ns, bytes});
    last = &sample;
  }
  const bool known = std::any_of(out.begin(), out.end(), [](const Point& p) { return p.value; });
  if (last == nullptr || !known) return {};
  // What the last sample said holds until then, and no longer.
  out.push_back({std::max(run.end_ns, last->time_ns + 1), std::nullopt});
  return out;
}

std::vector<Interval> sample_gaps(const Run& run) {
  std::vector<Interval> gaps;
  const auto pause_ns = longest_pause_ns(run);
  const auto& samples = run.samples.samples();
  for (std::size_t i = 1; i < samples.size(); ++i) {
    if (!is_gap(pause_ns, samples[i - 1].time_ns, samples[i].time_ns)) continue;
    // A single sample between two gaps says nothing about either.
    if (!gaps.empty() && gaps.back().second == samples[i - 1].time_ns) {
      gaps.back().second = samples[i].time_ns;
    } else {
      gaps.emplace_back(samples[i - 1].time_ns, samples[i].time_ns);
    }
  }
  return gaps;
}

Steps sum_steps(const std::vector<const Steps*>& all, Unknown unknown) {
  if (all.size() == 1) return *all.front();
  const auto changes = changes_of(all);
  std::vector<Part> now(all.size());
  Total total;
  Steps out;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const Change& change = changes[i];
    const Steps& steps = *all[change.steps];
    total.replace(now[change.steps],
                  {true, change.point + 1 == steps.size(), steps[change.point].value});
    if (i + 1 < changes.size() && changes[i + 1].time_ns == change.time_ns) continue;
    out.push_back({change.time_ns, total.value(unknown)});
  }
  return out;
}

Steps thin(const Steps& steps, std::size_t most) {
  most = std::max(most, kThinBucket);
  if (steps.size() <= most) return steps;
  const std::int64_t begin_ns = steps.front().time_ns;
  const auto length = static_cast<double>(steps.back().time_ns - begin_ns) + 1;
  const std::size_t part_count = most / kThinBucket;
  const auto parts = static_cast<double>(part_count);
  Steps out;
  Drawn drawn;
  double part = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double at = std::floor(static_cast<double>(steps[i].time_ns - begin_ns) / length * parts);
    if (at > part) drawn.take(steps, out);
    part = at;
    drawn.see(steps, i);
  }
  drawn.take(steps, out);
  return out;
}

}  // namespace sphase
