#include "launcher/builder.h"

#include <string.h>
#include <sys/wait.h>

namespace atl::launcher {

static constexpr unsigned kBuildSeconds = 20;

// What a builder says: the process it made (0: none), and why it is of no use (nothing: it is).
static Chore::Outcome describe(Shell shell, const Result<void>& built) {
  Chore::Outcome outcome;
  outcome.bytes.assign(reinterpret_cast<const char*>(&shell.pid), sizeof shell.pid);
  if (!built) outcome.bytes += static_cast<char>(built.error().code()) + built.error().message();
  for (UniqueFd* fd : {&shell.pidfd, &shell.mount_mapping, &shell.files}) {
    if (fd->valid()) outcome.fds.push_back(std::move(*fd));
  }
  return outcome;
}

Result<Builder> Builder::start(ShellPlan plan, os::CgroupTree& cgroups) {
  auto build = [&]() -> Result<Chore::Outcome> {
    Shell shell;
    Result<void> built = build_shell(plan, cgroups, shell);
    return describe(std::move(shell), built);
  };
  ATOLL_ASSIGN(Chore chore, Chore::start("atoll-builder", kBuildSeconds, build));
  return Builder(std::move(plan), std::move(chore));
}

Result<Shell> Builder::finish() {
  ATOLL_ASSIGN(Chore::Outcome outcome, chore_.finish());
  Shell shell;
  constexpr size_t kHead = sizeof shell.pid;
  if (outcome.bytes.size() < kHead) {
    return fail(ErrorCode::Internal, "a slot builder said too little");
  }
  memcpy(&shell.pid, outcome.bytes.data(), kHead);
  if (outcome.bytes.size() > kHead) {
    // Its child is ours (CLONE_PARENT), and has been killed.
    if (shell.pid != 0) waitpid(shell.pid, nullptr, 0);
    auto code = static_cast<ErrorCode>(outcome.bytes[kHead]);
    return fail(code, outcome.bytes.substr(kHead + 1));
  }
  if (outcome.fds.size() != 3) return fail(ErrorCode::Internal, "a slot builder passed too little");
  shell.pidfd = std::move(outcome.fds[0]);
  shell.mount_mapping = std::move(outcome.fds[1]);
  shell.files = std::move(outcome.fds[2]);
  return shell;
}

}  // namespace atl::launcher
