#include "launcher/builder.h"

#include <string.h>

namespace atl::launcher {

static constexpr unsigned kBuildSeconds = 20;

Result<Builder> Builder::start(ShellPlan plan, os::CgroupTree& cgroups) {
  auto build = [&]() -> Result<Chore::Outcome> {
    ATOLL_ASSIGN(Shell shell, build_shell(plan, cgroups));
    Chore::Outcome outcome;
    outcome.bytes.assign(reinterpret_cast<const char*>(&shell.pid), sizeof shell.pid);
    outcome.fds.push_back(std::move(shell.pidfd));
    outcome.fds.push_back(std::move(shell.mount_mapping));
    outcome.fds.push_back(std::move(shell.files));
    return outcome;
  };
  ATOLL_ASSIGN(Chore chore, Chore::start("atoll-builder", kBuildSeconds, build));
  return Builder(std::move(plan), std::move(chore));
}

Result<Shell> Builder::finish() {
  ATOLL_ASSIGN(Chore::Outcome outcome, chore_.finish());
  Shell shell;
  if (outcome.bytes.size() != sizeof shell.pid || outcome.fds.size() != 3) {
    return fail(ErrorCode::Internal, "a slot builder said too little");
  }
  memcpy(&shell.pid, outcome.bytes.data(), sizeof shell.pid);
  shell.pidfd = std::move(outcome.fds[0]);
  shell.mount_mapping = std::move(outcome.fds[1]);
  shell.files = std::move(outcome.fds[2]);
  return shell;
}

}  // namespace atl::launcher
