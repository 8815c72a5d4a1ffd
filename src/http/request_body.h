#pragma once

#include <chrono>
#include <functional>

#include "http/body.h"
#include "http/chunked.h"
#include "http/head_parser.h"
#include "http/input_buffer.h"
#include "http/pace.h"
#include "http/socket.h"

namespace atl::http {

// The body of the request at the front of a connection. Never reads past its own end, so the bytes
// of a pipelined request stay where they are.
class RequestBody final : public BodyReader {
 public:
  // What is read as a whole is counted in the head's request, which must outlive this.
  RequestBody(Socket& socket, InputBuffer& input, RequestHead& head,
              std::chrono::milliseconds timeout, Pace pace);

  Task<Result<size_t>> read(std::span<char> into) override;
  std::optional<uint64_t> content_length() const override { return framing_.length; }
  std::optional<uint64_t> remaining() const override;
  Task<Result<void>> wait_readable() override;

  bool complete() const;
  // Reads and drops the rest; false when it is too much or too slow to be worth it, or broken.
  Task<bool> drain(size_t max_bytes, std::chrono::milliseconds limit);
  // Could drain() succeed, as far as is known?
  bool can_drain(size_t max_bytes) const;
  // Runs once, when the last byte has been read.
  void on_complete(std::function<void()> callback) { on_complete_ = std::move(callback); }

 protected:
  Result<void> take_memory(size_t bytes) override { return memory_.take(bytes); }

 private:
  std::chrono::milliseconds patience() const;
  Task<Result<size_t>> read_socket(std::span<char> into);
  Task<Result<size_t>> read_span(std::span<char> into, uint64_t limit);
  Task<Result<void>> read_chunk_framing();
  Task<Result<void>> continue_if_expected();
  void note_progress();

  Socket& socket_;
  InputBuffer& input_;
  MemoryShare& memory_;
  Framing framing_;
  uint64_t left_ = 0;  // with a length
  ChunkedDecoder chunks_;
  bool owes_continue_;
  bool broken_ = false;
  std::chrono::milliseconds timeout_;
  Pace pace_;
  std::function<void()> on_complete_;
};

}  // namespace atl::http
