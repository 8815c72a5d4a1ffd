#include "sandbox/network_log.h"

namespace atl::sandbox {

const NetworkEntry& NetworkLog::add(NetworkEntry entry) {
  entry.seq = ++newest_;
  entries_.push_back(std::move(entry));
  if (entries_.size() > kMost) entries_.pop_front();
  for (const Waiting& waiting : std::exchange(waiting_, {})) waiting->set(true);
  return entries_.back();
}

std::vector<NetworkEntry> NetworkLog::after(uint64_t seq, size_t limit) const {
  std::vector<NetworkEntry> found;
  for (const NetworkEntry& entry : entries_) {
    if (entry.seq > seq && found.size() < limit) found.push_back(entry);
  }
  return found;
}

bool NetworkLog::is_news(const NetworkEntry& entry) {
  constexpr int64_t kQuietMs = 10'000;
  constexpr size_t kMostKept = 256;
  if (told_.size() >= kMostKept) told_.clear();
  std::string what = entry.protocol + " " + (entry.name.empty() ? entry.address : entry.name) +
                     ":" + std::to_string(entry.port) + " " + entry.rule;
  int64_t& last = told_[what];
  if (last != 0 && entry.at_ms - last < kQuietMs) return false;
  last = entry.at_ms;
  return true;
}

}  // namespace atl::sandbox
