// The server's end of the socket to the launcher.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <string>

#include "backends/native/request_channel.h"
#include "base/unique_fd.h"
#include "wire/launcher_messages.h"

namespace atl::native {

class LauncherClient : public RequestChannel, public std::enable_shared_from_this<LauncherClient> {
 public:
  LauncherClient(boost::asio::any_io_executor executor, UniqueFd socket);

  void start();
  void on_ended(std::function<void(const wire::Ended&)> callback) { ended_ = std::move(callback); }
  void on_import_progress(std::function<void(const wire::ImportProgress&)> callback) {
    import_progress_ = std::move(callback);
  }
  // The launcher is gone: nothing can be built or destroyed any more.
  void on_lost(std::function<void()> callback) { lost_ = std::move(callback); }

  // For what is answered with Done.
  template <class Request>
  Task<Result<void>> tell(Request request, ReplyLimit limit = kReplyLimit) {
    ATOLL_CO_TRY(co_await call<wire::LauncherDone>(std::move(request), limit));
    co_return Result<void>();
  }

 private:
  Task<Result<void>> send(std::string bytes) override;
  Task<void> read_loop();
  void handle(std::string_view message, std::vector<UniqueFd> fds);

  boost::asio::any_io_executor executor_;
  boost::asio::posix::stream_descriptor socket_;
  std::function<void(const wire::Ended&)> ended_;
  std::function<void(const wire::ImportProgress&)> import_progress_;
  std::function<void()> lost_;
};

}  // namespace atl::native
