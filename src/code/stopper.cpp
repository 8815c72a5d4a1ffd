#include <signal.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>

#include "async/with_deadline.h"
#include "code/cell_run.h"

namespace atl::code {

// After an interrupt, before the kernel is ended.
static constexpr std::chrono::seconds kGrace{3};
static constexpr std::chrono::seconds kEndLimit{10};

static Task<Result<void>> end_now(SessionPtr session, KernelProcess kernel) {
  if (!kernel.root.empty()) {
    // What stands for a branch ends it, then itself.
    ATOLL_CO_TRY(co_await session->signal(kernel.pid, SIGTERM, false));
  } else {
    ATOLL_CO_ASSIGN(auto processes, co_await session->processes());
    bool has_branches = false;
    for (const ProcessInfo& process : processes) {
      auto label = parse_label(process.label);
      has_branches |= process.running && label && label->root == kernel.id.text();
    }
    if (has_branches) {
      // They are of its tree: only its own group may be told.
      ATOLL_CO_TRY(co_await session->signal(kernel.pid, SIGHUP, true));
      ATOLL_CO_TRY(co_await session->signal(kernel.pid, SIGKILL, false));
    } else {
      ATOLL_CO_TRY(co_await session->signal(kernel.pid, SIGKILL, true));
    }
  }
  ATOLL_CO_TRY(co_await session->wait(kernel.pid));
  co_return Result<void>();
}

Task<Result<void>> end_kernel(SessionPtr session, KernelProcess kernel) {
  auto ended =
      co_await async::with_deadline(end_now(session, kernel), kEndLimit, "the kernel does not end");
  // One that has ended by itself has.
  if (!ended && ended.error().code() == ErrorCode::NotFound) co_return Result<void>();
  co_return ended;
}

void Stopper::expect_within(std::chrono::milliseconds limit, Reason reason) {
  if (finished_ || reason_) return;
  timer_.cancel();
  if (limit.count() == 0) return;
  timer_.expires_after(limit);
  timer_.async_wait([self = shared_from_this(), reason](boost::system::error_code error) {
    if (!error) self->stop(reason);
  });
}

void Stopper::begun(std::chrono::milliseconds limit) {
  stage_++;
  timer_.cancel();
  if (killed_) return;
  // What was to stop an earlier cell has done so; what is to stop this one came too early for it.
  auto earlier = std::exchange(reason_, std::nullopt);
  if (earlier && *earlier != Reason::NotBegun) return stop(*earlier);
  expect_within(limit, Reason::TimeUp);
}

void Stopper::stop(Reason reason) {
  if (finished_ || reason_) return;
  reason_ = reason;
  timer_.cancel();
  if (reason == Reason::Disturbed) return kill();
  boost::asio::co_spawn(
      timer_.get_executor(), [self = shared_from_this()] { return self->interrupt(); },
      boost::asio::detached);
}

Task<void> Stopper::interrupt() {
  auto self = shared_from_this();
  int stage = stage_;
  co_await session_->signal(kernel_.pid, SIGINT, kernel_.root.empty());
  if (finished_ || stage != stage_) co_return;
  timer_.expires_after(kGrace);
  boost::system::error_code error;
  co_await timer_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, error));
  if (!finished_ && stage == stage_) kill();
}

void Stopper::kill() {
  killed_ = true;
  boost::asio::co_spawn(timer_.get_executor(), end_kernel(session_, kernel_),
                        [](std::exception_ptr, Result<void>) {});
}

void Stopper::finish() {
  finished_ = true;
  timer_.cancel();
}

}  // namespace atl::code
