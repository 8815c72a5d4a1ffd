#include "http_load.h"

#include <sys/epoll.h>

#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "http/headers.h"

namespace atl::bench {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(10'000);

tl::unexpected<Error> nonsense(std::string_view what) {
  return fail(ErrorCode::Internal, "load: " + std::string(what));
}

Result<size_t> content_length(std::string_view head) {
  size_t at = 0;
  while ((at = head.find("\r\n", at)) != head.npos) {
    at += 2;
    size_t colon = head.find(':', at);
    if (colon == head.npos) break;
    if (!http::equals_ignoring_case(head.substr(at, colon - at), "Content-Length")) continue;
    std::string_view digits = http::trim(head.substr(colon + 1, head.find('\r', at) - colon - 1));
    size_t length = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
    if (error == std::errc() && end == digits.data() + digits.size()) return length;
    break;
  }
  return nonsense("an answer without a length");
}

// The length of the first answer, once its head is there.
Result<std::optional<size_t>> answer_length(std::string_view received) {
  size_t head = received.find("\r\n\r\n");
  if (head == received.npos) return std::optional<size_t>();
  if (!received.starts_with("HTTP/1.")) return nonsense("not HTTP");
  ATOLL_ASSIGN(size_t length, content_length(received.substr(0, head + 2)));
  return std::optional<size_t>(head + 4 + length);
}

bool is_success(std::string_view answer) { return answer.size() > 9 && answer[9] == '2'; }

}  // namespace

std::string HttpLoadOptions::get(const std::string& target) {
  return "GET " + target + " HTTP/1.1\r\nHost: bench\r\n\r\n";
}

Result<HttpLoad> HttpLoad::connect(HttpLoadOptions options) {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return fail_errno("epoll_create1");
  ATOLL_ASSIGN(http::Endpoint endpoint, http::Endpoint::parse(options.endpoint));
  HttpLoad load(std::move(options), std::move(epoll));
  load.connections_.reserve(load.options_.connections);
  for (unsigned i = 0; i < load.options_.connections; i++) {
    ATOLL_ASSIGN(http::BlockingSocket socket, http::BlockingSocket::connect(endpoint, kPatience));
    epoll_event event{.events = EPOLLIN, .data = {.u32 = i}};
    if (epoll_ctl(load.epoll_.get(), EPOLL_CTL_ADD, socket.fd(), &event) != 0) {
      return fail_errno("epoll_ctl");
    }
    load.connections_.push_back({std::move(socket), {}, {}});
  }
  return load;
}

Result<void> HttpLoad::send_request(Connection& connection) {
  connection.watch = Stopwatch();
  waiting_++;
  return connection.socket.write({options_.request});
}

Result<bool> HttpLoad::receive(Connection& connection, HttpLoadResult& result) {
  std::array<char, 16 * 1024> block;
  ATOLL_ASSIGN(std::optional<size_t> got, connection.socket.try_read(block));
  if (!got) return false;
  if (*got == 0) return fail(ErrorCode::Unavailable, "load: the server closed a connection");
  std::string_view bytes(block.data(), *got);
  // Small answers come whole and need no copy.
  if (!connection.received.empty()) bytes = connection.received.append(bytes);
  ATOLL_ASSIGN(std::optional<size_t> length, answer_length(bytes));
  if (!length || bytes.size() < *length) {
    if (connection.received.empty()) connection.received = bytes;
    return false;
  }
  if (bytes.size() > *length) return nonsense("more than was asked for");
  result.responses++;
  if (!is_success(bytes)) result.failures++;
  result.latency_us.add(connection.watch.us());
  connection.received.clear();
  waiting_--;
  return true;
}

Result<void> HttpLoad::take_turn(Connection& connection, bool go_on, HttpLoadResult& result) {
  ATOLL_ASSIGN(bool whole, receive(connection, result));
  if (whole && go_on) return send_request(connection);
  return {};
}

Result<HttpLoadResult> HttpLoad::run(double seconds) {
  HttpLoadResult result;
  Stopwatch watch;
  for (Connection& connection : connections_) ATOLL_TRY(send_request(connection));
  std::array<epoll_event, 64> events;
  while (waiting_ > 0) {
    int ready = epoll_wait(epoll_.get(), events.data(), events.size(), kPatience.count());
    if (ready == 0) return fail(ErrorCode::Timeout, "load: the server went silent");
    if (ready < 0 && errno != EINTR) return fail_errno("epoll_wait");
    bool go_on = watch.seconds() < seconds;
    for (int i = 0; i < ready; i++) {
      ATOLL_TRY(take_turn(connections_[events[i].data.u32], go_on, result));
    }
  }
  result.seconds = watch.seconds();
  return result;
}

}  // namespace atl::bench
