#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "atoll/client.h"

namespace atl::cli {

// A transfer's bar on standard error: only on a terminal, and only once it has taken a second.
class Progress {
 public:
  Progress(std::string label, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(uint64_t done, std::optional<uint64_t> total);
  ProgressSink sink();
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  std::string label_;
  bool enabled_;
  bool shown_ = false;
  Clock::time_point began_ = Clock::now();
  Clock::time_point next_ = began_ + std::chrono::seconds(1);
};

// "label  [#####-----]  50%     1.2 GiB of 2.4 GiB     300 MiB/s"
std::string progress_line(const std::string& label, uint64_t done, std::optional<uint64_t> total,
                          double seconds, size_t width);

}  // namespace atl::cli
