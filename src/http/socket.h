#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "atoll/task.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "http/deadline.h"
#include "http/socket_calls.h"
#include "http/tls_session.h"

namespace atl::http {

// One connected stream socket on the server's thread. System calls are tried at once and the
// reactor is asked only when the kernel says to wait, so a fast peer costs no scheduling. Reads and
// writes may overlap; two of a kind may not. Past its deadline an operation fails with Timeout and
// so does everything after it.
class Socket {
 public:
  using Clock = DeadlineQueue::Clock;
  using Duration = std::chrono::milliseconds;

  // With `tls` what goes over the wire is encrypted, once the handshake is done.
  Socket(boost::asio::any_io_executor executor, UniqueFd fd, DeadlineQueue& deadlines,
         std::unique_ptr<TlsSession> tls = nullptr);
  Socket(Socket&&) noexcept = default;
  Socket& operator=(Socket&&) = delete;
  ~Socket();

  Task<Result<void>> handshake(Clock::time_point deadline);
  bool encrypted() const;
  // The peer of a failed handshake spoke HTTP in the clear, and so do we from now on, to say so.
  bool falls_back_to_plain();

  // 0 is the end of the stream.
  Task<Result<size_t>> read(std::span<char> into, Duration timeout);
  // The same for bytes that are most likely not there yet.
  Task<Result<size_t>> read_later(std::span<char> into, Clock::time_point deadline);
  Result<std::optional<size_t>> try_read(std::span<char> into);

  Result<bool> try_write(WriteParts& parts);
  Task<Result<void>> write(WriteParts parts, Duration timeout);

  Task<Result<void>> wait_readable(Duration timeout);
  Task<Result<void>> wait_writable(Duration timeout);
  // Calls back once when there is something to read or the peer hung up; dropped by cancel().
  void notify_readable(std::function<void()> callback);

  // Pending operations fail.
  void cancel();
  void shut_down_writing();
  // Ends both directions: pending and later operations fail or see the end.
  void abort();
  bool timed_out() const;

  boost::asio::any_io_executor executor() const;
  int native_handle() const;
  // Gives the connection up; nothing may follow.
  struct Released {
    UniqueFd fd;
    std::unique_ptr<TlsSession> tls;
  };
  Released release();

 private:
  struct State;
  enum class Direction { Read, Write };
  Task<Result<void>> wait(Direction purpose, Clock::time_point deadline);
  Task<void> yield_now_and_then();

  std::shared_ptr<State> state_;
};

}  // namespace atl::http
