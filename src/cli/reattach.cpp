#include "cli/reattach.h"

#include <errno.h>
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>

namespace atl::cli {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::chrono::seconds kPatience{20};
constexpr milliseconds kFirstPause{20};
constexpr milliseconds kLongestPause{500};

bool interrupted(const ReattachPlan& plan, milliseconds pause) {
  pollfd polled{plan.interrupt_fd, POLLIN, 0};
  return poll(&polled, 1, static_cast<int>(pause.count())) > 0;
}

Error lost(const ReattachPlan& plan, Error last) {
  std::string what =
      fmt::format("lost the connection to process {}, which goes on (see 'atoll logs -f {} {}')",
                  plan.pid, plan.sandbox, plan.pid);
  return std::move(last).context(what);
}

template <class Open>
auto try_again(const ReattachPlan& plan, Error cause, Open open) -> decltype(open()) {
  if (!is_server_away(cause)) return fail(std::move(cause));
  auto deadline = Clock::now() + kPatience;
  milliseconds pause = kFirstPause;
  for (;;) {
    auto opened = open();
    if (opened || !is_server_away(opened.error())) return opened;
    if (Clock::now() >= deadline) return fail(lost(plan, std::move(opened).error()));
    if (plan.only_once || interrupted(plan, pause)) {
      return fail(ErrorCode::Cancelled, "interrupted");
    }
    pause = std::min(pause * 2, kLongestPause);
  }
}

}  // namespace

bool is_server_away(const Error& error) {
  switch (error.code()) {
    case ErrorCode::Unavailable:
    case ErrorCode::Cancelled:
      return true;
    default:
      // Between two servers there is no socket to connect to.
      return error.sys_errno() == ENOENT || error.sys_errno() == ECONNREFUSED;
  }
}

Result<Attachment> reattach(Client& client, const ReattachPlan& plan, Error cause) {
  return try_again(plan, std::move(cause), [&] {
    return client.attach(plan.sandbox, plan.pid, plan.offsets,
                         plan.resume_input ? AttachInput::Resume : AttachInput::Share);
  });
}

Result<LogReader> reopen_logs(Client& client, const ReattachPlan& plan, Error cause) {
  LogRequest request;
  request.follow = true;
  request.offsets = plan.offsets;
  return try_again(plan, std::move(cause),
                   [&] { return client.logs(plan.sandbox, plan.pid, request); });
}

}  // namespace atl::cli
