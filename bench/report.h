// What was measured, beside what it should be: a table for people, a flat JSON object for programs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "stats.h"

namespace atl::bench {

class Report {
 public:
  // Without a value it is null: asked for, but not to be had here.
  void set(std::string key, std::optional<double> value);
  // KEY_p50_us, KEY_p95_us, KEY_p99_us and KEY_samples.
  void set_latency(const std::string& key, const Samples& samples);
  // How a number came about, or why there is none.
  void note(std::string text) { notes_.push_back(std::move(text)); }

  std::optional<double> get(std::string_view key) const;
  void print() const;
  Result<void> write_json(const std::string& path) const;

 private:
  bool has(std::string_view key) const;

  std::vector<std::pair<std::string, std::optional<double>>> values_;
  std::vector<std::string> notes_;
};

}  // namespace atl::bench
