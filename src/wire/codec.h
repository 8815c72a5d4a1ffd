// The encoding under every message between server, launcher and agent: little-endian integers,
// length-prefixed bytes, counted lists. A message lists its fields once, in `visit`, and both
// directions follow from that list. The reader trusts nothing: it never reads past the end, never
// allocates more than the input could fill, and reports trailing bytes as an error.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.h"

namespace atl::wire {

template <class T>
concept Scalar = std::is_integral_v<T> || std::is_enum_v<T>;

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  template <class... Fields>
  void operator()(const Fields&... fields) {
    (put(fields), ...);
  }

 private:
  template <Scalar T>
  void put(const T& value) {
    // All hosts Atoll runs on are little-endian.
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put(const std::string& text) {
    put(static_cast<uint32_t>(text.size()));
    out_.append(text);
  }
  template <class T>
  void put(const std::vector<T>& list) {
    put(static_cast<uint32_t>(list.size()));
    for (const T& item : list) put(item);
  }
  template <class T>
    requires requires(T& t, Writer& w) { t.visit(w); }
  void put(const T& message) {
    const_cast<T&>(message).visit(*this);  // visit is shared with Reader and does not modify here
  }

  std::string& out_;
};

class Reader {
 public:
  explicit Reader(std::string_view in) : in_(in) {}

  template <class... Fields>
  void operator()(Fields&... fields) {
    (get(fields), ...);
  }
  bool complete() const { return ok_ && in_.empty(); }

 private:
  template <Scalar T>
  void get(T& value) {
    if (in_.size() < sizeof value) return stop();
    if constexpr (std::is_same_v<T, bool>) {
      value = in_[0] != 0;  // any other byte pattern would be an invalid bool
    } else {
      memcpy(&value, in_.data(), sizeof value);
    }
    in_.remove_prefix(sizeof value);
  }
  void get(std::string& text) {
    uint32_t size = 0;
    get(size);
    if (!ok_ || in_.size() < size) return stop();
    text.assign(in_.substr(0, size));
    in_.remove_prefix(size);
  }
  template <class T>
  void get(std::vector<T>& list) {
    uint32_t count = 0;
    get(count);
    // Every item takes at least one byte, so a larger count is a lie.
    if (!ok_ || count > in_.size()) return stop();
    list.clear();
    for (uint32_t i = 0; i < count && ok_; i++) get(list.emplace_back());
  }
  template <class T>
    requires requires(T& t, Reader& r) { t.visit(r); }
  void get(T& message) {
    message.visit(*this);
  }
  void stop() {
    ok_ = false;
    in_ = {};
  }

  std::string_view in_;
  bool ok_ = true;
};

template <class Message>
std::string encode(const Message& message) {
  std::string out;
  Writer writer(out);
  writer(message);
  return out;
}

template <class Message>
Result<Message> decode(std::string_view bytes) {
  Message message{};
  Reader reader(bytes);
  reader(message);
  if (!reader.complete()) return fail(ErrorCode::InvalidArgument, "malformed message");
  return message;
}

}  // namespace atl::wire
