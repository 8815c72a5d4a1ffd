// Frames on a stream socket: a fixed header, then the payload of one message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "wire/codec.h"

namespace atl::wire {

// A request's reply carries the request's id; frames of a byte stream carry id 0.
struct FrameHeader {
  uint32_t size = 0;  // of the payload
  uint16_t type = 0;
  uint16_t reserved = 0;
  uint32_t id = 0;
};
inline constexpr size_t kHeaderBytes = 12;
inline constexpr uint32_t kMaxPayload = 4u << 20;

FrameHeader parse_header(const char* bytes);
void append_header(std::string& out, const FrameHeader& header);

struct Frame {
  uint16_t type = 0;
  uint32_t id = 0;
  std::string_view payload;  // valid until the FrameBuffer changes
};

// Collects bytes from a socket and hands out whole frames.
class FrameBuffer {
 public:
  // Space for at least `wanted` more bytes; commit() says how many arrived.
  char* prepare(size_t wanted);
  void commit(size_t count) { size_ += count; }
  // The next whole frame, nothing if more bytes are needed, an error if the peer broke the rules.
  Result<std::optional<Frame>> next();
  // The header at the front without taking it; nothing while it is incomplete. And raw bytes from
  // the front, for payloads that are passed on as they arrive.
  Result<std::optional<FrameHeader>> peek() const;
  std::string_view take(size_t most);
  // How much to read next: up to the end of the frame that has begun and the header after it, so
  // that what is left over is never more than a header and need not be moved; else `idle`.
  size_t wanted(size_t idle) const;
  bool empty() const { return begin_ == size_; }
  // Gives memory back after a burst; an idle connection should cost nothing.
  void shrink();

 private:
  std::string data_;
  size_t begin_ = 0;
  size_t size_ = 0;
};

template <class Message>
void append_frame(std::string& out, uint32_t id, const Message& message) {
  size_t start = out.size();
  out.resize(start + kHeaderBytes);
  Writer writer(out);
  writer(message);
  std::string header;
  append_header(header, {.size = static_cast<uint32_t>(out.size() - start - kHeaderBytes),
                         .type = static_cast<uint16_t>(Message::kType),
                         .id = id});
  out.replace(start, kHeaderBytes, header);
}

}  // namespace atl::wire
