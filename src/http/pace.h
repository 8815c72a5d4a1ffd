#pragma once

#include <chrono>
#include <cstddef>

namespace atl::http {

// Whether a sender keeps up a least pace. Only the time that it was waited for counts, cut into
// windows: in each but the first it must send so many bytes.
class Pace {
 public:
  using Duration = std::chrono::steady_clock::duration;

  // No bytes: any pace will do.
  Pace(Duration window, size_t bytes) : window_(window), bytes_(bytes) {}

  // How long it may stay silent now before it is too slow.
  Duration patience() const;
  // Says whether that was within its patience.
  [[nodiscard]] bool waited(Duration time);
  void received(size_t bytes) { received_ += bytes; }

 private:
  Duration window_;
  size_t bytes_;  // to be sent in a window
  Duration waited_{0};
  size_t received_ = 0;
  bool first_ = true;
};

}  // namespace atl::http
