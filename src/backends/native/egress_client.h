// The server's end of the stream to egress.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <string>

#include "backends/native/request_channel.h"
#include "base/unique_fd.h"
#include "http/async_mutex.h"
#include "wire/egress_messages.h"

namespace atl::native {

class EgressClient : public RequestChannel, public std::enable_shared_from_this<EgressClient> {
 public:
  EgressClient(boost::asio::any_io_executor executor, UniqueFd socket);

  void start();
  void on_traffic(std::function<void(wire::Traffic)> callback) { traffic_ = std::move(callback); }

 private:
  Task<Result<void>> send(std::string bytes) override;
  Task<void> read_loop();
  void handle(const wire::Frame& frame);

  boost::asio::any_io_executor executor_;
  boost::asio::posix::stream_descriptor socket_;
  http::AsyncMutex sending_;
  std::function<void(wire::Traffic)> traffic_;
};

}  // namespace atl::native
