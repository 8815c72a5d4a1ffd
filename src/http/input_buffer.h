#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

namespace atl::http {

// Bytes read from a connection and not consumed yet, contiguous.
class InputBuffer {
 public:
  std::string_view view() const { return {data_.get() + begin_, end_ - begin_}; }
  size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }

  void consume(size_t bytes) {
    begin_ += bytes;
    if (begin_ == end_) begin_ = end_ = 0;
  }

  size_t take(std::span<char> into) {
    size_t count = std::min(into.size(), size());
    std::memcpy(into.data(), data_.get() + begin_, count);
    consume(count);
    return count;
  }

  // Room for at least `bytes` more; say with commit() how much was used.
  std::span<char> prepare(size_t bytes) {
    if (capacity_ - end_ < bytes) make_room(bytes);
    return {data_.get() + end_, capacity_ - end_};
  }
  void commit(size_t bytes) { end_ += bytes; }

  // For a long wait: an empty buffer gives its memory back.
  void release_if_empty() {
    if (!empty()) return;
    data_.reset();
    capacity_ = begin_ = end_ = 0;
  }

 private:
  void make_room(size_t bytes) {
    size_t wanted = size() + bytes;
    size_t capacity = std::max(capacity_, wanted);
    auto fresh = std::make_unique_for_overwrite<char[]>(capacity);
    size_t used = size();
    if (used > 0) std::memcpy(fresh.get(), data_.get() + begin_, used);
    data_ = std::move(fresh);
    capacity_ = capacity;
    begin_ = 0;
    end_ = used;
  }

  std::unique_ptr<char[]> data_;
  size_t capacity_ = 0;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace atl::http
