// The latest of what a sandbox has tried to reach, and who waits for more.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "async/one_shot.h"
#include "atoll/network_log.h"

namespace atl::sandbox {

class NetworkLog {
 public:
  static constexpr size_t kMost = 1000;

  // Numbers the entry.
  const NetworkEntry& add(NetworkEntry entry);
  std::vector<NetworkEntry> after(uint64_t seq, size_t limit) const;
  uint64_t newest() const { return newest_; }
  // Set once something is added; the caller sets it itself when its time is up.
  using Waiting = std::shared_ptr<async::OneShot<bool>>;
  void wait(Waiting waiting) { waiting_.push_back(std::move(waiting)); }

  // Whether a denial is news: the same one is told once in ten seconds, and only so many of all.
  bool is_news(const NetworkEntry& entry);

 private:
  std::deque<NetworkEntry> entries_;
  uint64_t newest_ = 0;
  std::vector<Waiting> waiting_;
  std::map<std::string, int64_t> told_;
};

}  // namespace atl::sandbox
