#pragma once

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace atl::http {

// Bound and listening sockets, non-blocking.
struct UnixListener {
  UniqueFd fd;
  dev_t device = 0;
  ino_t inode = 0;
};
Result<UnixListener> listen_on_path(const std::string& path, mode_t mode);
Result<UniqueFd> listen_on_address(const std::string& address, uint16_t port);
Result<uint16_t> bound_port(int fd);

// Accepts connections until closed. When the process is out of descriptors it spends a spare one on
// accepting and closing, so that clients see an end instead of a connection that nobody serves, and
// the loop does not spin.
class Listener : public std::enable_shared_from_this<Listener> {
 public:
  using OnConnection = std::function<void(UniqueFd)>;

  Listener(boost::asio::any_io_executor executor, UniqueFd fd, OnConnection on_connection);
  ~Listener();

  void start();
  void close();

 private:
  struct State;
  void wait();
  void accept_waiting();
  bool accept_one();
  void shed_one();

  std::unique_ptr<State> state_;
  OnConnection on_connection_;
  UniqueFd spare_;
  std::chrono::steady_clock::time_point last_shed_{};  // one line of log a second
};

}  // namespace atl::http
