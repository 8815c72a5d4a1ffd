#include "api/e2b/connect.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <charconv>

#include "api/e2b/errors.h"

namespace atl::api::e2b {
namespace {

namespace asio = boost::asio;

constexpr std::string_view kStreamType = "application/connect+json";
constexpr size_t kHeadBytes = 5;
constexpr size_t kMaxMessage = 16u << 20;
constexpr char kEndFlag = 2;
constexpr int64_t kMaxKeepaliveSeconds = 3600;

std::string framed(char flags, std::string_view json) {
  std::string out;
  out.reserve(kHeadBytes + json.size());
  out += flags;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(json.size() >> shift);
  out.append(json);
  return out;
}

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

}  // namespace

bool is_stream(const http::Request& request) {
  return request.headers.get("content-type").value_or("").starts_with(kStreamType);
}

std::string envelope(std::string_view json) { return framed(0, json); }

std::string end_envelope(const Error* error) {
  if (error == nullptr) return framed(kEndFlag, "{}");
  return framed(kEndFlag, R"({"error":)" + connect_error_json(*error) + "}");
}

http::Response stream_refusal(const Error& error) {
  http::Response response;
  response.headers.set("Content-Type", std::string(kStreamType));
  response.body = end_envelope(&error);
  return response;
}

Task<Result<bool>> EnvelopeReader::fill(size_t size) {
  char part[16384];
  while (buffer_.size() < size) {
    ATOLL_CO_ASSIGN(size_t got, co_await body_.read(part));
    if (got == 0 && buffer_.empty()) co_return false;
    if (got == 0) co_return fail(ErrorCode::InvalidArgument, "the stream ends within a message");
    if (size_t now = buffer_.size() + got; now > counted_) {
      ATOLL_CO_TRY(memory_.take(2 * (now - counted_)));  // the message is cut out of it
      counted_ = now;
    }
    buffer_.append(part, got);
  }
  co_return true;
}

Task<Result<std::optional<std::string>>> EnvelopeReader::next() {
  ATOLL_CO_ASSIGN(bool there, co_await fill(kHeadBytes));
  if (!there) co_return std::nullopt;
  size_t size = 0;
  for (size_t at = 1; at < kHeadBytes; at++) size = size << 8 | static_cast<uint8_t>(buffer_[at]);
  if (size > kMaxMessage) co_return fail(ErrorCode::TooLarge, "a message has at most 16 MiB");
  if (buffer_[0] != 0) {
    co_return fail(ErrorCode::NotSupported, "compressed messages are not supported");
  }
  ATOLL_CO_TRY(co_await fill(kHeadBytes + size));
  std::string message = buffer_.substr(kHeadBytes, size);
  buffer_.erase(0, kHeadBytes + size);
  co_return message;
}

Task<Result<http::JsonDocument>> read_message(http::Request& request) {
  std::string text;
  if (is_stream(request)) {
    EnvelopeReader reader(request);
    ATOLL_CO_ASSIGN(auto message, co_await reader.next());
    if (!message) co_return fail(ErrorCode::InvalidArgument, "the request has no message");
    text = std::move(*message);
    // To its end: only then can the client's going be noticed.
    ATOLL_CO_ASSIGN(auto more, co_await reader.next());
    if (more) co_return fail(ErrorCode::InvalidArgument, "this call takes one message");
  } else {
    ATOLL_CO_ASSIGN(text, co_await request.body->read_all(kMaxMessage));
  }
  co_return http::JsonDocument::parse(text.empty() ? "{}" : text, kMaxMessage);
}

Result<std::optional<std::chrono::milliseconds>> time_limit(const http::Request& request) {
  auto header = request.headers.get("connect-timeout-ms");
  if (!header) return std::nullopt;
  auto value = whole_number(*header);
  if (value && header->size() <= 10) return std::chrono::milliseconds(*value);
  return fail(Error(ErrorCode::InvalidArgument, "a time limit has at most ten digits")
                  .with_field("Connect-Timeout-Ms"));
}

std::chrono::seconds keepalive_interval(const http::Request& request) {
  auto header = request.headers.get("keepalive-ping-interval");
  auto value = header ? whole_number(*header) : std::nullopt;
  return std::chrono::seconds(std::min(value.value_or(0), kMaxKeepaliveSeconds));
}

Task<Result<void>> MessageStream::start(std::chrono::seconds interval) {
  ATOLL_CO_TRY(co_await writer_->start(200, {{"Content-Type", std::string(kStreamType)}}));
  if (interval.count() == 0) co_return Result<void>();
  auto executor = co_await asio::this_coro::executor;
  timer_ = std::make_unique<asio::steady_timer>(executor);
  asio::co_spawn(
      executor, [self = shared_from_this(), interval] { return self->show_life(interval); },
      asio::detached);
  co_return Result<void>();
}

Task<void> MessageStream::show_life(std::chrono::seconds interval) {
  auto self = shared_from_this();
  while (writer_ != nullptr) {
    timer_->expires_after(interval);
    auto [error] = co_await timer_->async_wait(asio::as_tuple(asio::use_awaitable));
    if (error || writer_ == nullptr) break;
    if (!co_await writer_->write(keepalive_)) break;
  }
  quiet_.set(true);
}

Task<Result<void>> MessageStream::send(std::string_view json) {
  std::string bytes = envelope(json);
  co_return co_await writer_->write(bytes);
}

Task<Result<void>> MessageStream::finish(const Error* error) {
  std::string bytes = end_envelope(error);
  ATOLL_CO_TRY(co_await writer_->write(bytes));
  co_return co_await writer_->finish();
}

Task<void> MessageStream::close() {
  writer_ = nullptr;
  if (timer_ == nullptr) co_return;
  timer_->cancel();
  (void)co_await quiet_.wait();
}

}  // namespace atl::api::e2b
