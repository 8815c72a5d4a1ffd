// The server's end of the socket to the launcher.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "async/one_shot.h"
#include "atoll/result.h"
#include "atoll/task.h"
#include "base/unique_fd.h"
#include "wire/frame.h"
#include "wire/launcher_messages.h"

namespace atl::native {

class LauncherClient : public std::enable_shared_from_this<LauncherClient> {
 public:
  LauncherClient(boost::asio::any_io_executor executor, UniqueFd socket);

  void start();
  void on_ended(std::function<void(const wire::Ended&)> callback) { ended_ = std::move(callback); }
  // The launcher is gone: nothing can be built or destroyed any more.
  void on_lost(std::function<void()> callback) { lost_ = std::move(callback); }

  template <class Reply, class Request>
  Task<Result<Reply>> call(Request request) {
    std::string bytes;
    uint32_t id = next_id_++;
    wire::append_frame(bytes, id, request);
    auto raw = co_await exchange(id, std::move(bytes));
    if (!raw) co_return fail(std::move(raw).error());
    if (raw->type != static_cast<uint16_t>(Reply::kType)) {
      co_return fail(ErrorCode::Internal, "unexpected reply from the launcher");
    }
    co_return wire::decode<Reply>(raw->payload);
  }

 private:
  struct RawReply {
    uint16_t type = 0;
    std::string payload;
  };
  Task<Result<RawReply>> exchange(uint32_t id, std::string bytes);
  Task<void> read_loop();
  void handle(std::string_view message);
  void fail_all();

  boost::asio::any_io_executor executor_;
  boost::asio::posix::stream_descriptor socket_;
  std::map<uint32_t, std::shared_ptr<async::OneShot<Result<RawReply>>>> pending_;
  std::function<void(const wire::Ended&)> ended_;
  std::function<void()> lost_;
  uint32_t next_id_ = 1;
};

}  // namespace atl::native
