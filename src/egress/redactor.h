// Hides values in a stream of bytes: each byte of them becomes '*', so that lengths stay as they
// are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace atl::egress {

class Redactor {
 public:
  explicit Redactor(const std::vector<std::string>& values) : values_(values) {
    for (const std::string& value : values_) longest_ = std::max(longest_, value.size());
  }

  // What can be passed on now; the end, which may be the beginning of a value, is held back.
  std::string feed(std::string_view bytes) {
    held_.append(bytes);
    mask(held_);
    size_t keep = std::min(held_.size(), longest_ == 0 ? 0 : longest_ - 1);
    std::string out = held_.substr(0, held_.size() - keep);
    held_.erase(0, out.size());
    return out;
  }
  std::string finish() { return std::exchange(held_, {}); }

  void mask(std::string& text) const {
    for (const std::string& value : values_) {
      for (size_t at = text.find(value); at != text.npos;
           at = text.find(value, at + value.size())) {
        text.replace(at, value.size(), value.size(), '*');
      }
    }
  }

 private:
  const std::vector<std::string>& values_;
  std::string held_;
  size_t longest_ = 0;
};

}  // namespace atl::egress
