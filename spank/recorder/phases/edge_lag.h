// How late edges were read: a histogram whose buckets grow by a quarter, so that a quantile is
// right to 25 % in 1 kB whatever the number of edges.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>

namespace sphase {

class EdgeLag {
 public:
  void add(std::int64_t lag_ns) {
    ++count_;
    ++buckets_[bucket(lag_ns)];
  }
  /// Unit: ns, upper end of the bucket. nullopt: no edge yet.
  std::optional<std::int64_t> quantile_ns(double share) const {
    if (count_ == 0) return std::nullopt;
    const auto wanted = static_cast<std::int64_t>(std::ceil(share * static_cast<double>(count_)));
    std::int64_t seen = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      seen += buckets_[i];
      if (seen >= wanted) return static_cast<std::int64_t>(std::pow(1.25, i + 1) * kFirstNs);
    }
    return std::nullopt;
  }

 private:
  static constexpr double kFirstNs = 1000;
  static std::size_t bucket(std::int64_t lag_ns) {
    if (lag_ns <= static_cast<std::int64_t>(kFirstNs)) return 0;
    const double index = std::log(static_cast<double>(lag_ns) / kFirstNs) / std::log(1.25);
    return std::min<std::size_t>(kBuckets - 1, static_cast<std::size_t>(index));
  }
  static constexpr std::size_t kBuckets = 96;  // up to about 2 000 s
  std::array<std::int64_t, kBuckets> buckets_{};
  std::int64_t count_ = 0;
};

}  // namespace sphase
