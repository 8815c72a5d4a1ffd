#include "launcher/shell.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>

#include "launcher/listener.h"
#include "launcher/network.h"
#include "launcher/rootfs.h"
#include "launcher/shell_setup.h"
#include "os/file.h"
#include "os/id_map.h"
#include "os/syscalls.h"

namespace atl::launcher {
namespace {

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

Result<Pipe> make_pipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return fail_errno("pipe2");
  return Pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

struct Cloned {
  pid_t pid = 0;
  UniqueFd pidfd;
};

Result<Cloned> clone_into_namespaces(int cgroup_dir) {
  int pidfd = -1;
  clone_args args{};
  args.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
               CLONE_NEWCGROUP | CLONE_PIDFD | CLONE_PARENT;
  args.pidfd = reinterpret_cast<uintptr_t>(&pidfd);
  if (cgroup_dir >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<uint64_t>(cgroup_dir);
  }
  auto pid = static_cast<pid_t>(syscall(SYS_clone3, &args, sizeof args));
  if (pid < 0) return fail_errno("clone3", "the sandbox's namespaces");
  return Cloned{.pid = pid, .pidfd = UniqueFd(pidfd)};
}

Result<void> await_exec(const Pipe& report) {
  char text[512];
  ssize_t size = read(report.read_end.get(), text, sizeof text);
  if (size == 0) return {};  // closed by exec
  std::string reason = size > 0 ? std::string(text, static_cast<size_t>(size)) : "no report";
  return fail(ErrorCode::Internal, "setting up a sandbox: " + reason);
}

}  // namespace

Result<void> build_shell(const ShellPlan& plan, os::CgroupTree& cgroups, Shell& shell) {
  ATOLL_TRY(cgroups.create(plan.slot, plan.id_base));
  ATOLL_TRY(cgroups.set_limits(plan.slot, plan.limits));
  ATOLL_TRY(cgroups.join_legacy(plan.slot));
  ATOLL_TRY(enter_new_network());
  ATOLL_ASSIGN(UniqueFd listener, make_listener({.run_dir = plan.run_dir,
                                                 .slot = plan.slot,
                                                 .uid = plan.server_uid,
                                                 .gid = plan.server_gid}));
  ATOLL_ASSIGN(UniqueFd cgroup_dir, cgroups.open_unified(plan.slot));
  ATOLL_ASSIGN(UniqueFd proc, os::open_dir_at(AT_FDCWD, "/proc"));
  ATOLL_ASSIGN(Pipe go, make_pipe());
  ATOLL_ASSIGN(Pipe report, make_pipe());
  ShellChild child{.plan = &plan,
                   .go_fd = go.read_end.get(),
                   .go_write_fd = go.write_end.get(),
                   .report_fd = report.write_end.get(),
                   .listener = listener.get(),
                   .cgroup_dir = cgroup_dir.get()};
  ATOLL_ASSIGN(Cloned cloned, clone_into_namespaces(cgroup_dir.get()));
  if (cloned.pid == 0) become_agent(child);

  shell.pid = cloned.pid;
  shell.pidfd = std::move(cloned.pidfd);
  auto finish = [&]() -> Result<void> {
    ATOLL_TRY(os::write_id_maps(proc.get(), shell.pid, 0, plan.id_base));
    ATOLL_ASSIGN(shell.mount_mapping, os::make_mount_mapping(proc.get(), plan.id_base));
    ATOLL_ASSIGN(BlankFiles files,
                 make_blank_files(*plan.pool, plan.slot, shell.mount_mapping.get()));
    shell.files = std::move(files.tree);
    report.write_end.reset();
    if (write(go.write_end.get(), "g", 1) != 1) return fail_errno("write", "go");
    return await_exec(report);
  };
  Result<void> finished = finish();
  if (!finished) os::pidfd_send_signal(shell.pidfd.get(), SIGKILL);
  return finished;
}

}  // namespace atl::launcher
