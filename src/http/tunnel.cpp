#include "http/tunnel.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>

namespace atl::http {
namespace {

namespace asio = boost::asio;

constexpr Socket::Duration kForever = std::chrono::hours(24 * 365);
// A peer that is gone ends its direction as one does that has only said all: the difference shows
// when something is written to it, which the other may never do.
constexpr auto kHalfOpenSilence = std::chrono::minutes(5);

struct Progress {
  bool back_ended = false;
  uint64_t pieces = 0;  // of both ways
};

// One buffer for all: what is read is passed on before anybody else runs, or copied.
std::span<char> shared_buffer() {
  static thread_local std::array<char, 128 * 1024> buffer;
  return buffer;
}

// A peer whose host is gone says nothing more, and neither may the other for hours.
void notice_dead_peers(const Socket& socket) {
  constexpr int kOn = 1, kIdleSeconds = 60, kProbeSeconds = 15, kProbes = 4;
  int fd = socket.native_handle();
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &kOn, sizeof kOn);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kIdleSeconds, sizeof kIdleSeconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kProbeSeconds, sizeof kProbeSeconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kProbes, sizeof kProbes);
}

Task<void> pump(Socket& from, Socket& to, TunnelMeter& meter, TunnelMeter::Way way,
                uint64_t& pieces) {
  for (;;) {
    auto buffer = shared_buffer();
    auto got = from.try_read(buffer);
    if (got && !*got) {
      if (!co_await from.wait_readable(kForever)) break;
      continue;
    }
    if (!got) break;
    if (**got == 0) {
      // The other direction may go on.
      to.shut_down_writing();
      co_return;
    }
    size_t size = **got;
    pieces++;
    meter.moved(way, size);
    WriteParts parts{std::string_view(buffer.data(), size)};
    auto written = to.try_write(parts);
    if (!written) break;
    if (!*written) {
      std::string rest(parts[0]);
      if (!co_await to.write({rest}, kForever)) break;
    }
    if (meter.slows()) co_await meter.slow(size);
  }
  from.abort();
  to.abort();
}

}  // namespace

Task<void> ignore_cancellation() {
  co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
}
Task<void> hear_cancellation() {
  co_await asio::this_coro::reset_cancellation_state(asio::enable_terminal_cancellation());
}

Task<void> tunnel(Socket& near, Socket& far, TunnelMeter& meter) {
  notice_dead_peers(near);
  notice_dead_peers(far);
  auto executor = near.executor();
  auto progress = std::make_shared<Progress>();
  asio::steady_timer ended(executor, asio::steady_timer::time_point::max());
  auto backward = [&near, &far, &meter, &ended, progress]() -> Task<void> {
    co_await pump(far, near, meter, TunnelMeter::Way::Back, progress->pieces);
    progress->back_ended = true;
    ended.cancel();
  };
  asio::co_spawn(executor, backward, asio::detached);
  co_await pump(near, far, meter, TunnelMeter::Way::Out, progress->pieces);
  while (!progress->back_ended) {
    uint64_t before = progress->pieces;
    ended.expires_after(kHalfOpenSilence);
    boost::system::error_code cancelled;
    co_await ended.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    if (cancelled || progress->back_ended || progress->pieces != before) continue;
    near.abort();
    far.abort();
  }
}

}  // namespace atl::http
