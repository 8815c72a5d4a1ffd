#include "os/id_map.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "os/file.h"
#include "os/raw_clone.h"
#include "os/raw_syscall.h"

namespace atl::os {

Result<void> write_id_maps(int proc_dir, pid_t pid, uint32_t inside, uint32_t outside) {
  std::string line = std::to_string(inside) + " " + std::to_string(outside) + " " +
                     std::to_string(kIdBlockSize) + "\n";
  std::string base = std::to_string(pid);
  ATOLL_TRY(write_file_at(proc_dir, (base + "/uid_map").c_str(), line));
  return write_file_at(proc_dir, (base + "/gid_map").c_str(), line);
}

// Runs in the caller's memory. Not beyond the caller's end: a builder can be killed at any time.
static void wait_to_be_killed(void* parent) {
  raw_syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
  while (raw_syscall(SYS_getppid) == as_register(parent)) {
    raw_syscall(SYS_ppoll, nullptr, 0, nullptr, nullptr, 0);
  }
  raw_syscall(SYS_exit, 1);
}

Result<UniqueFd> make_mount_mapping(int proc_dir, uint32_t block_base) {
  // The namespace lives on through its descriptor; the process is only there to be mapped.
  alignas(16) static char stack[4096];
  clone_args args{};
  args.flags = CLONE_NEWUSER | CLONE_VM;
  args.exit_signal = SIGCHLD;
  args.stack = pointer_value(stack);
  args.stack_size = sizeof stack;
  long pid = clone3_call(args, wait_to_be_killed, reinterpret_cast<void*>(intptr_t{getpid()}));
  if (pid < 0) {
    errno = static_cast<int>(-pid);
    return fail_errno("clone3", "user namespace");
  }
  auto child = static_cast<pid_t>(pid);
  Result<void> mapped = write_id_maps(proc_dir, child, kDiskIdBase, block_base);
  UniqueFd fd(openat(proc_dir, (std::to_string(child) + "/ns/user").c_str(), O_RDONLY | O_CLOEXEC));
  int open_error = errno;
  ::kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  if (!mapped) return fail(std::move(mapped).error());
  if (!fd.valid()) return fail(Error::from_errno(open_error, "open", "user namespace"));
  return fd;
}

}  // namespace atl::os
