// WebSocket frames (RFC 6455 5.2) as a client sends and receives them; no input or output.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::http {

enum class Opcode : uint8_t {
  Continuation = 0,
  Text = 1,
  Binary = 2,
  Close = 8,
  Ping = 9,
  Pong = 10,
};

struct Frame {
  Opcode opcode = Opcode::Text;
  bool final = true;
  std::string payload;
};

using MaskKey = std::array<uint8_t, 4>;
// A whole masked message in one frame.
std::string encode_client_frame(Opcode opcode, std::string_view payload, MaskKey key);

// Takes bytes as they come and gives frames back. Refuses masked frames, reserved bits and control
// frames that are long or fragmented, as a server sends none.
class FrameDecoder {
 public:
  explicit FrameDecoder(size_t max_payload) : max_payload_(max_payload) {}

  void feed(std::string_view bytes) { buffer_.append(bytes); }
  // None: incomplete.
  Result<std::optional<Frame>> next();
  bool empty() const { return position_ == buffer_.size(); }

 private:
  size_t max_payload_;
  std::string buffer_;
  size_t position_ = 0;
};

}  // namespace atl::http
