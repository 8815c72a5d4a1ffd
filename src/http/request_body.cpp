#include "http/request_body.h"

#include <algorithm>
#include <array>
#include <utility>

namespace atl::http {

constexpr size_t kFramingRead = 4096;

// Deadlines are not exact: bytes may still come before one is noticed.
static tl::unexpected<Error> too_slow() {
  return fail(ErrorCode::Timeout, "the request body comes too slowly");
}

RequestBody::RequestBody(Socket& socket, InputBuffer& input, RequestHead& head,
                         std::chrono::milliseconds timeout, Pace pace)
    : socket_(socket),
      input_(input),
      memory_(head.request.memory),
      framing_(head.framing),
      left_(head.framing.length.value_or(0)),
      owes_continue_(head.expects_continue && !complete()),
      timeout_(timeout),
      pace_(pace) {}

bool RequestBody::complete() const { return framing_.chunked ? chunks_.done() : left_ == 0; }

std::optional<uint64_t> RequestBody::remaining() const {
  if (framing_.chunked) return std::nullopt;
  return left_;
}

Task<Result<size_t>> RequestBody::read(std::span<char> into) {
  if (broken_) co_return fail(ErrorCode::Unavailable, "the request body broke off");
  if (complete() || into.empty()) co_return size_t{0};
  broken_ = true;  // until this read has gone well
  if (owes_continue_) ATOLL_CO_TRY(co_await continue_if_expected());
  if (framing_.chunked && chunks_.data_left() == 0) {
    ATOLL_CO_TRY(co_await read_chunk_framing());
    if (chunks_.done()) {
      broken_ = false;
      note_progress();
      co_return size_t{0};
    }
  }
  uint64_t limit = framing_.chunked ? chunks_.data_left() : left_;
  ATOLL_CO_ASSIGN(size_t got, co_await read_span(into, limit));
  broken_ = false;
  if (framing_.chunked) {
    chunks_.consume_data(got);
  } else {
    left_ -= got;
  }
  note_progress();
  co_return got;
}

std::chrono::milliseconds RequestBody::patience() const {
  return std::min(timeout_, std::chrono::ceil<std::chrono::milliseconds>(pace_.patience()));
}

Task<Result<size_t>> RequestBody::read_socket(std::span<char> into) {
  auto begun = Socket::Clock::now();
  ATOLL_CO_ASSIGN(size_t got, co_await socket_.read(into, patience()));
  if (!pace_.waited(Socket::Clock::now() - begun)) co_return too_slow();
  pace_.received(got);
  if (got == 0) co_return fail(ErrorCode::Unavailable, "the client went away during the body");
  co_return got;
}

Task<Result<size_t>> RequestBody::read_span(std::span<char> into, uint64_t limit) {
  into = into.first(static_cast<size_t>(std::min<uint64_t>(into.size(), limit)));
  if (!input_.empty()) co_return input_.take(into);
  co_return co_await read_socket(into);
}

Task<Result<void>> RequestBody::read_chunk_framing() {
  while (true) {
    ATOLL_CO_ASSIGN(size_t used, chunks_.feed(input_.view()));
    input_.consume(used);
    if (chunks_.data_left() > 0 || chunks_.done()) co_return Result<void>();
    std::span<char> room = input_.prepare(kFramingRead);
    ATOLL_CO_ASSIGN(size_t got, co_await read_socket(room));
    input_.commit(got);
  }
}

Task<Result<void>> RequestBody::continue_if_expected() {
  owes_continue_ = false;
  // A client that sends its body without waiting needs no encouragement (RFC 9110 10.1.1).
  if (!input_.empty()) co_return Result<void>();
  WriteParts parts{"HTTP/1.1 100 Continue\r\n\r\n"};
  co_return co_await socket_.write(parts, timeout_);
}

Task<Result<void>> RequestBody::wait_readable() {
  if (owes_continue_) ATOLL_CO_TRY(co_await continue_if_expected());
  auto begun = Socket::Clock::now();
  auto readable = co_await socket_.wait_readable(patience());
  if (readable && !pace_.waited(Socket::Clock::now() - begun)) co_return too_slow();
  co_return readable;
}

void RequestBody::note_progress() {
  if (complete() && on_complete_) std::exchange(on_complete_, nullptr)();
}

bool RequestBody::can_drain(size_t max_bytes) const {
  if (complete()) return true;
  // After a final status a client that was never told to continue may send the body or not.
  if (broken_ || owes_continue_) return false;
  return framing_.chunked || left_ <= max_bytes;
}

Task<bool> RequestBody::drain(size_t max_bytes, std::chrono::milliseconds limit) {
  if (!can_drain(max_bytes)) co_return false;
  std::array<char, 8192> sink;
  size_t total = 0;
  auto deadline = Socket::Clock::now() + limit;
  timeout_ = limit;
  while (!complete() && total <= max_bytes && Socket::Clock::now() < deadline) {
    auto got = co_await read(sink);
    if (!got) co_return false;
    total += *got;
  }
  co_return complete();
}

}  // namespace atl::http
