// Counters, gauges and histograms, and their text in the Prometheus exposition format 0.0.4.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace atl {

// Counting takes one relaxed atomic addition: keep the reference, and from any thread.
class Counter {
 public:
  void add(uint64_t amount = 1) { value_.fetch_add(amount, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_ = 0;
};

class Gauge {
 public:
  void set(int64_t value) { value_.store(value, std::memory_order_relaxed); }
  void add(int64_t amount) { value_.fetch_add(amount, std::memory_order_relaxed); }
  int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_ = 0;
};

class Histogram {
 public:
  // Upper bounds, ascending; the bucket for everything greater comes by itself.
  explicit Histogram(std::vector<double> bounds);

  void observe(double value);
  uint64_t count() const;
  double sum() const { return sum_.load(std::memory_order_relaxed); }

  const std::vector<double>& bounds() const { return bounds_; }
  // Of one bucket alone, not of those below it; the last is bounds().size().
  uint64_t bucket(size_t index) const { return counts_[index].load(std::memory_order_relaxed); }

 private:
  std::vector<double> bounds_;
  std::unique_ptr<std::atomic<uint64_t>[]> counts_;
  std::atomic<double> sum_ = 0;
};

// From a tenth of a millisecond to ten seconds.
std::vector<double> latency_seconds_bounds();

// Owns metrics for as long as it lives. The same name and labels give the same metric again. Names
// and help are the program's own text: a malformed name, or one that is used for two kinds, aborts.
// Label values may be anything, but every new one is a time series for ever: keep to small sets.
class MetricsRegistry {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  MetricsRegistry();
  MetricsRegistry(const MetricsRegistry&) = delete;
  MetricsRegistry& operator=(const MetricsRegistry&) = delete;
  ~MetricsRegistry();

  Counter& counter(std::string_view name, std::string_view help, Labels labels = {});
  Gauge& gauge(std::string_view name, std::string_view help, Labels labels = {});
  // Asked at every render(), on its thread; must not call the registry.
  void gauge(std::string_view name, std::string_view help, Labels labels,
             std::function<double()> read);
  // A family's histograms have the bounds of the first.
  Histogram& histogram(std::string_view name, std::string_view help, std::vector<double> bounds,
                       Labels labels = {});

  // Sorted by name and labels. Serve it as kMetricsContentType.
  std::string render() const;

 private:
  struct Series;
  struct Family;
  enum class Kind { Counter, Gauge, Histogram };
  Series& series(Kind kind, std::string_view name, std::string_view help, Labels labels);

  mutable std::mutex mutex_;  // of the tables, never of the counting
  std::map<std::string, std::unique_ptr<Family>, std::less<>> families_;
};

inline constexpr std::string_view kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace atl
