#include "http/pace.h"

namespace atl::http {

Pace::Duration Pace::patience() const {
  if (bytes_ == 0) return Duration::max();
  bool safe = first_ || received_ >= bytes_;
  return window_ - waited_ + (safe ? window_ : Duration(0));
}

bool Pace::waited(Duration time) {
  bool in_time = time <= patience();
  waited_ += time;
  if (waited_ < window_) return in_time;
  waited_ %= window_;
  received_ = 0;
  first_ = false;
  return in_time;
}

}  // namespace atl::http
