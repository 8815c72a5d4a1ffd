#include "http/client_websocket.h"

#include <sys/random.h>

#include "http/blocking_socket.h"
#include "http/websocket_frame.h"

namespace atl::http {

constexpr size_t kMaxMessage = 64 * 1024 * 1024;
constexpr uint16_t kNoStatus = 1005;

struct ClientWebSocket::State {
  State(std::unique_ptr<BlockingSocket> connected, std::string chosen)
      : socket(std::move(connected)), subprotocol(std::move(chosen)) {}

  Result<void> send(Opcode opcode, std::string_view data) {
    if (close_sent) return fail(ErrorCode::Cancelled, "the WebSocket is closed");
    MaskKey key{};
    if (getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size())) {
      return fail_errno("getrandom");
    }
    std::string frame = encode_client_frame(opcode, data, key);
    return socket->write(WriteParts{frame});
  }

  // The next whole message among the bytes that are here; answers control frames on the way.
  Result<std::optional<Message>> assemble() {
    while (true) {
      ATOLL_ASSIGN(std::optional<Frame> frame, frames.next());
      if (!frame) return std::optional<Message>();
      if (frame->opcode >= Opcode::Close) {
        ATOLL_TRY(answer_control(*frame));
        continue;
      }
      bool continues = frame->opcode == Opcode::Continuation;
      if (continues != partial.has_value()) {
        return fail(ErrorCode::Internal, "WebSocket: fragments out of order");
      }
      if (!continues) partial.emplace(Message{frame->opcode == Opcode::Binary, {}});
      partial->data.append(frame->payload);
      if (partial->data.size() > kMaxMessage) {
        return fail(ErrorCode::TooLarge, "the WebSocket message is too large");
      }
      if (!frame->final) continue;
      std::optional<Message> message = std::move(partial);
      partial.reset();
      return message;
    }
  }

  Result<void> answer_control(const Frame& frame) {
    if (frame.opcode == Opcode::Ping) return send(Opcode::Pong, frame.payload);
    if (frame.opcode == Opcode::Pong) return {};
    if (frame.payload.size() >= 2) {
      close_code = static_cast<uint16_t>(static_cast<uint8_t>(frame.payload[0]) << 8 |
                                         static_cast<uint8_t>(frame.payload[1]));
      close_reason = frame.payload.substr(2);
    }
    if (!close_sent) {
      // The server ends the connection after the echo; that it is gone already does not matter.
      [[maybe_unused]] auto ignored = send(Opcode::Close, frame.payload.substr(0, 2));
      close_sent = true;
    }
    return fail(ErrorCode::Cancelled, "the WebSocket is closed");
  }

  std::unique_ptr<BlockingSocket> socket;
  FrameDecoder frames{kMaxMessage};
  std::optional<Message> partial;
  std::string subprotocol;
  bool close_sent = false;
  uint16_t close_code = kNoStatus;
  std::string close_reason;
};

ClientWebSocket::ClientWebSocket(std::unique_ptr<BlockingSocket> socket, std::string read_ahead,
                                 std::string subprotocol)
    : state_(std::make_unique<State>(std::move(socket), std::move(subprotocol))) {
  state_->frames.feed(read_ahead);
}
ClientWebSocket::ClientWebSocket(ClientWebSocket&&) noexcept = default;
ClientWebSocket& ClientWebSocket::operator=(ClientWebSocket&&) noexcept = default;
ClientWebSocket::~ClientWebSocket() = default;

Result<void> ClientWebSocket::send_text(std::string_view data) {
  return state_->send(Opcode::Text, data);
}
Result<void> ClientWebSocket::send_binary(std::string_view data) {
  return state_->send(Opcode::Binary, data);
}
Result<void> ClientWebSocket::ping(std::string_view data) {
  return state_->send(Opcode::Ping, data.substr(0, 125));
}

Result<ClientWebSocket::Message> ClientWebSocket::receive(std::chrono::milliseconds timeout) {
  std::string block(64 * 1024, '\0');
  while (true) {
    ATOLL_ASSIGN(std::optional<Message> message, state_->assemble());
    if (message) return std::move(*message);
    auto usual = state_->socket->timeout();
    state_->socket->set_timeout(timeout);
    auto got = state_->socket->read(block);
    state_->socket->set_timeout(usual);
    if (!got) return tl::unexpected(std::move(got).error());
    if (*got == 0) return fail(ErrorCode::Unavailable, "the server closed the connection");
    state_->frames.feed(std::string_view(block).substr(0, *got));
  }
}

Result<std::optional<ClientWebSocket::Message>> ClientWebSocket::try_receive() {
  std::string block(64 * 1024, '\0');
  while (true) {
    ATOLL_ASSIGN(std::optional<Message> message, state_->assemble());
    if (message) return message;
    ATOLL_ASSIGN(std::optional<size_t> got, state_->socket->try_read(block));
    if (!got) return std::optional<Message>();
    if (*got == 0) return fail(ErrorCode::Unavailable, "the server closed the connection");
    state_->frames.feed(std::string_view(block).substr(0, *got));
  }
}

Result<void> ClientWebSocket::close(uint16_t code, std::string_view reason) {
  std::string payload{static_cast<char>(code >> 8), static_cast<char>(code & 0xff)};
  payload.append(reason.substr(0, 120));
  auto sent = state_->send(Opcode::Close, payload);
  state_->close_sent = true;
  return sent;
}

int ClientWebSocket::fd() const { return state_->socket->fd(); }
bool ClientWebSocket::pending() const {
  return !state_->frames.empty() || state_->socket->has_buffered();
}
uint16_t ClientWebSocket::close_code() const { return state_->close_code; }
const std::string& ClientWebSocket::close_reason() const { return state_->close_reason; }
const std::string& ClientWebSocket::subprotocol() const { return state_->subprotocol; }

}  // namespace atl::http
