// Samples of one quantity, and the clock they are taken with.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

namespace atl::bench {

class Stopwatch {
 public:
  double us() const {
    return std::chrono::duration<double, std::micro>(Clock::now() - begin_).count();
  }
  double seconds() const { return us() / 1e6; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
};

class Samples {
 public:
  void add(double value) { values_.push_back(value); }
  size_t size() const { return values_.size(); }

  // The smallest sample that `share` of all are no greater than; none without samples.
  std::optional<double> percentile(double share) const {
    if (values_.empty()) return std::nullopt;
    std::vector<double> sorted = values_;
    auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
    size_t index = std::clamp<size_t>(rank, 1, sorted.size()) - 1;
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(index),
                     sorted.end());
    return sorted[index];
  }
  std::optional<double> median() const { return percentile(0.5); }

 private:
  std::vector<double> values_;
};

inline std::optional<double> ratio(std::optional<double> a, std::optional<double> b) {
  if (!a || !b || *b == 0) return std::nullopt;
  return *a / *b;
}

}  // namespace atl::bench
