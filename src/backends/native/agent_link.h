// One connection to an agent: frames out and in. Everything that comes from an agent may be a lie:
// it lives in the sandbox.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <memory>
#include <string>

#include "atoll/result.h"
#include "atoll/task.h"
#include "wire/agent_messages.h"
#include "wire/frame.h"

namespace atl::native {

class AgentLink {
 public:
  static Task<Result<std::unique_ptr<AgentLink>>> connect(boost::asio::any_io_executor executor,
                                                          std::string path);
  explicit AgentLink(boost::asio::posix::stream_descriptor socket) : socket_(std::move(socket)) {}

  template <class Message>
  Task<Result<void>> send(uint32_t id, Message message) {
    std::string bytes;
    wire::append_frame(bytes, id, message);
    co_return co_await write(std::move(bytes));
  }
  // A frame with this payload, which is not copied.
  Task<Result<void>> send_payload(wire::AgentType type, std::string_view payload);
  Task<Result<void>> write(std::string bytes);

  // The next frame as it came; its payload is valid until the next call.
  Task<Result<wire::Frame>> receive_any();
  // Same, but a Failure frame becomes the error it carries.
  Task<Result<wire::Frame>> receive();
  template <class Message>
  Task<Result<Message>> expect() {
    auto frame = co_await receive();
    if (!frame) co_return fail(std::move(frame).error());
    if (frame->type != static_cast<uint16_t>(Message::kType)) {
      co_return fail(ErrorCode::Internal, "unexpected reply from the sandbox's agent");
    }
    co_return wire::decode<Message>(frame->payload);
  }

  void close();
  bool is_open() const { return socket_.is_open(); }
  void set_read_size(size_t bytes) { read_size_ = bytes; }
  // Gives the receive buffer back while nothing is expected.
  void shrink() { in_.shrink(); }

 private:
  Task<Result<void>> write_all(std::string_view first, std::string_view second);
  Task<Result<void>> wait_writable();
  Task<Result<void>> fill();

  boost::asio::posix::stream_descriptor socket_;
  wire::FrameBuffer in_;
  size_t read_size_ = 16u << 10;
};

Error agent_failure(const wire::Frame& frame);
Error agent_gone();

}  // namespace atl::native
