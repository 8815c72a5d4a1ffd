#include "sandbox/network_log.h"

#include <cstdlib>

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
  // Each is a row of the database: a sandbox that asks for names at random must not fill it.
  constexpr size_t kMostAtOnce = 32;
  if (told_.size() >= kMostAtOnce) {
    std::erase_if(told_,
                  [&](const auto& one) { return std::abs(entry.at_ms - one.second) >= kQuietMs; });
  }
  std::string what = entry.protocol + " " + (entry.name.empty() ? entry.address : entry.name) +
                     ":" + std::to_string(entry.port) + " " + entry.rule;
  auto known = told_.find(what);
  if (known == told_.end() && told_.size() >= kMostAtOnce) return false;
  if (known != told_.end() && std::abs(entry.at_ms - known->second) < kQuietMs) return false;
  told_[what] = entry.at_ms;
  return true;
}

}  // namespace atl::sandbox
