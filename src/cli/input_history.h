// Standard input on its way to a process: what is read and not sent yet, and the newest of what was
// sent, so that a broken connection can go on from what the process really got.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace atl::cli {

class InputHistory {
 public:
  // More than all buffers between here and the process hold.
  static constexpr size_t kKept = 16u << 20;

  void append(std::string_view bytes) { bytes_.append(bytes); }
  std::string_view unsent(size_t most) const {
    return std::string_view(bytes_).substr(sent_, most);
  }
  bool all_sent() const { return sent_ == bytes_.size(); }

  void mark_sent(size_t count) {
    sent_ += count;
    if (sent_ <= 2 * kKept) return;
    size_t old = sent_ - kKept;
    bytes_.erase(0, old);
    first_ += old;
    sent_ -= old;
  }

  // The process has got `offset` bytes in all: what follows is to be sent again. False where that
  // is no longer kept, or was never sent.
  bool rewind(uint64_t offset) {
    if (offset < first_ || offset > first_ + sent_) return false;
    sent_ = static_cast<size_t>(offset - first_);
    return true;
  }

 private:
  std::string bytes_;
  uint64_t first_ = 0;  // of bytes_, counted from the first byte ever read
  size_t sent_ = 0;
};

}  // namespace atl::cli
