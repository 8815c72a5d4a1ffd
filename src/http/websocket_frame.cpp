#include "http/websocket_frame.h"

namespace atl::http {
namespace {

constexpr uint8_t kFinal = 0x80;
constexpr uint8_t kReserved = 0x70;
constexpr uint8_t kMasked = 0x80;
constexpr size_t kMaxControlPayload = 125;

void append_big_endian(std::string& out, uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(value >> shift));
  }
}

uint64_t read_big_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (char c : bytes) value = value << 8 | static_cast<uint8_t>(c);
  return value;
}

// How many bytes of length follow the second one.
size_t extended_length(uint8_t short_length) {
  if (short_length == 126) return 2;
  return short_length == 127 ? 8 : 0;
}

Result<void> check_start(uint8_t first, uint8_t second) {
  if ((first & kReserved) != 0)
    return fail(ErrorCode::Internal, "WebSocket: reserved bits are set");
  if ((second & kMasked) != 0) return fail(ErrorCode::Internal, "WebSocket: the server masks");
  uint8_t opcode = first & 0x0f;
  if (opcode > 10 || (opcode > 2 && opcode < 8)) {
    return fail(ErrorCode::Internal, "WebSocket: unknown opcode");
  }
  bool control = opcode >= 8;
  if (control && ((first & kFinal) == 0 || second > kMaxControlPayload)) {
    return fail(ErrorCode::Internal, "WebSocket: malformed control frame");
  }
  return {};
}

}  // namespace

std::string encode_client_frame(Opcode opcode, std::string_view payload, MaskKey key) {
  std::string out;
  out.reserve(payload.size() + 14);
  out.push_back(static_cast<char>(kFinal | static_cast<uint8_t>(opcode)));
  if (payload.size() < 126) {
    out.push_back(static_cast<char>(kMasked | payload.size()));
  } else if (payload.size() <= 0xffff) {
    out.push_back(static_cast<char>(kMasked | 126));
    append_big_endian(out, payload.size(), 2);
  } else {
    out.push_back(static_cast<char>(kMasked | 127));
    append_big_endian(out, payload.size(), 8);
  }
  for (uint8_t byte : key) out.push_back(static_cast<char>(byte));
  size_t start = out.size();
  out.append(payload);
  for (size_t i = 0; i < payload.size(); i++) {
    out[start + i] = static_cast<char>(out[start + i] ^ key[i % 4]);
  }
  return out;
}

Result<std::optional<Frame>> FrameDecoder::next() {
  std::string_view input = std::string_view(buffer_).substr(position_);
  if (input.size() < 2) return std::optional<Frame>();
  auto first = static_cast<uint8_t>(input[0]);
  auto second = static_cast<uint8_t>(input[1]);
  ATOLL_TRY(check_start(first, second));
  size_t extra = extended_length(second);
  if (input.size() < 2 + extra) return std::optional<Frame>();
  uint64_t length = extra == 0 ? second : read_big_endian(input.substr(2, extra));
  if (length > max_payload_) return fail(ErrorCode::TooLarge, "the WebSocket message is too large");
  size_t head = 2 + extra;
  if (input.size() < head + length) return std::optional<Frame>();
  Frame frame{static_cast<Opcode>(first & 0x0f), (first & kFinal) != 0,
              std::string(input.substr(head, length))};
  position_ += head + length;
  // Small frames come many to a read: move the rest down once, not once a frame.
  if (position_ == buffer_.size() || position_ > 64 * 1024) {
    buffer_.erase(0, position_);
    position_ = 0;
  }
  return frame;
}

}  // namespace atl::http
