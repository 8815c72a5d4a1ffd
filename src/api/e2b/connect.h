// The Connect protocol over HTTP/1.1 with JSON: unary calls are plain requests; a stream is a
// sequence of envelopes (one byte of flags, four of length, JSON) that ends with one that says how.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "async/one_shot.h"
#include "http/json.h"
#include "http/message.h"
#include "http/response_writer.h"

namespace atl::api::e2b {

bool is_stream(const http::Request& request);

std::string envelope(std::string_view json);
// The last envelope; without an error, the good end.
std::string end_envelope(const Error* error);
// A stream that holds nothing but its bad end.
http::Response stream_refusal(const Error& error);

// The messages of a request that is a stream.
class EnvelopeReader {
 public:
  explicit EnvelopeReader(http::Request& request) : body_(*request.body), memory_(request.memory) {}
  // None at the end.
  Task<Result<std::optional<std::string>>> next();

 private:
  Task<Result<bool>> fill(size_t size);

  http::BodyReader& body_;
  http::MemoryShare& memory_;
  size_t counted_ = 0;  // of the memory: the most that was here at a time
  std::string buffer_;
};

// The one message of a call that is no client stream, whichever of the two forms it has.
Task<Result<http::JsonDocument>> read_message(http::Request& request);

// The time that the client gives the call; none: all of it.
Result<std::optional<std::chrono::milliseconds>> time_limit(const http::Request& request);

// The answer to a call that streams. A quiet one says now and then that it is alive.
class MessageStream : public std::enable_shared_from_this<MessageStream> {
 public:
  MessageStream(http::ResponseWriter& writer, std::string keepalive)
      : writer_(&writer), keepalive_(envelope(keepalive)) {}

  // `interval` of zero: never says it.
  Task<Result<void>> start(std::chrono::seconds interval);
  Task<Result<void>> send(std::string_view json);
  Task<Result<void>> finish(const Error* error = nullptr);
  // Ends the signs of life; to be waited for before the writer goes.
  Task<void> close();

 private:
  Task<void> show_life(std::chrono::seconds interval);

  http::ResponseWriter* writer_;  // null once closed
  std::string keepalive_;
  std::unique_ptr<boost::asio::steady_timer> timer_;
  async::OneShot<bool> quiet_;  // nothing shows life any more
};
// As the client asks for it.
std::chrono::seconds keepalive_interval(const http::Request& request);

}  // namespace atl::api::e2b
