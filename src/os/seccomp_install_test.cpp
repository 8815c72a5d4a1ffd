// Installs the real filters in forked children and runs real programs under them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <functional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "os/exec_filter.h"
#include "os/seccomp_filter.h"
#include "os/seccomp_test_support.h"

namespace atl {
namespace {

using seccomp_testing::install;

constexpr int kDeadlineMs = 30'000;

struct ChildResult {
  int exit_code = -1;
  std::string output;
};

// Reads until the child closes the pipe; kills it at the deadline.
std::string drain(int fd, pid_t child) {
  std::string output;
  char buffer[4096];
  for (pollfd ready{fd, POLLIN, 0};;) {
    if (poll(&ready, 1, kDeadlineMs) <= 0) {
      kill(child, SIGKILL);
      return output + "\n(killed at the deadline)";
    }
    const ssize_t size = read(fd, buffer, sizeof(buffer));
    if (size <= 0) return output;
    output.append(buffer, size_t(size));
  }
}

ChildResult run_in_child(const std::function<int()>& body) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const pid_t child = fork();
  if (child == 0) {
    dup2(writer.get(), 1);
    dup2(writer.get(), 2);
    _exit(body());
  }
  writer.reset();
  ChildResult result;
  result.output = drain(reader.get(), child);
  int status = 0;
  waitpid(child, &status, 0);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

class FilteredChild : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::vector<sock_filter>> built = build_main_filter();
    ASSERT_TRUE(built) << built.error().message();
    main_ = std::move(*built);
  }

  // As the agent: main filter only.
  ChildResult as_agent(const std::function<int()>& body) {
    return run_in_child([&] { return install(main_) ? body() : 99; });
  }

  // As a command: both filters.
  ChildResult as_command(const std::function<int()>& body) {
    return run_in_child([&] { return install(main_) && install(os::kExecFilter) ? body() : 99; });
  }

  ChildResult shell(const std::string& script) {
    return as_command([&] {
      execl("/bin/bash", "bash", "-c", script.c_str(), nullptr);
      return 98;
    });
  }

  void expect_shell(const std::string& script, const std::string& output) {
    const ChildResult result = shell(script);
    EXPECT_EQ(result.exit_code, 0) << script << '\n' << result.output;
    EXPECT_EQ(result.output, output) << script;
  }

  std::vector<sock_filter> main_;
};

bool fails_with(int error, long result) { return result == -1 && errno == error; }

TEST_F(FilteredChild, StartsThreadsThroughTheFallbackFromClone3) {
  const ChildResult result = as_command([] {
    if (!fails_with(ENOSYS, syscall(SYS_clone3, nullptr, 0))) return 1;
    pthread_t thread;
    void* value = nullptr;
    if (pthread_create(
            &thread, nullptr, [](void* in) { return in; }, &thread) != 0)
      return 2;
    return pthread_join(thread, &value) == 0 && value == &thread ? 0 : 3;
  });
  EXPECT_EQ(result.exit_code, 0) << result.output;
}

TEST_F(FilteredChild, LetsTheAgentUseClone3) {
  // Not ENOSYS: the kernel looked at the (absent) arguments.
  const ChildResult result =
      as_agent([] { return fails_with(EINVAL, syscall(SYS_clone3, nullptr, 0)) ? 0 : 1; });
  EXPECT_EQ(result.exit_code, 0);
}

TEST_F(FilteredChild, LetsTheAgentGiveUpItsRights) {
  const ChildResult result = as_agent([&] {
    for (int capability = 0; prctl(PR_CAPBSET_READ, capability) >= 0; ++capability) {
      if (prctl(PR_CAPBSET_DROP, capability) != 0) return 1;
    }
    const gid_t group = 65534;
    if (syscall(SYS_setgroups, 1, &group) != 0) return 2;
    if (syscall(SYS_setresgid, group, group, group) != 0) return 3;
    if (syscall(SYS_setresuid, 65534, 65534, 65534) != 0) return 4;
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2] = {};
    if (syscall(SYS_capset, &header, none) != 0) return 5;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return 6;
    if (prctl(PR_SET_DUMPABLE, 0) != 0) return 7;
    return install(os::kExecFilter) ? 0 : 8;
  });
  // Dropping the bounding set needs CAP_SETPCAP, so only root gets past the first step.
  EXPECT_EQ(result.exit_code, geteuid() == 0 ? 0 : 1) << result.output;
}

TEST_F(FilteredChild, IsRefusedWhatThePolicyRefuses) {
  const ChildResult result = as_command([] {
    if (!fails_with(EPERM, syscall(SYS_unshare, CLONE_NEWUSER))) return 1;
    if (!fails_with(EPERM, syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0))) return 2;
    if (!fails_with(EPERM, syscall(SYS_mount, 0, 0, 0, 0, 0))) return 3;
    if (!fails_with(EPERM, syscall(SYS_bpf, 0, 0, 0))) return 4;
    if (!fails_with(EPERM, socket(AF_VSOCK, SOCK_STREAM, 0))) return 5;
    if (!fails_with(EPERM, socket(AF_INET, SOCK_STREAM, 262 /* MPTCP */))) return 6;
    if (!fails_with(EPERM, syscall(SYS_ioctl, 0, 0x1'0000'0000 | TIOCSTI, 0))) return 7;
    if (!fails_with(ENOSYS, syscall(600))) return 8;
    return fails_with(ENOSYS, syscall(0x40000000 | SYS_getpid)) ? 0 : 9;
  });
  EXPECT_EQ(result.exit_code, 0) << result.output;
}

#if defined(__x86_64__)
TEST_F(FilteredChild, CannotSwitchToThe32BitAbi) {
  const ChildResult result = as_command([] {
    long number = 20;  // getpid there
    asm volatile("int $0x80" : "+a"(number) : : "memory");
    return number == -ENOSYS ? 0 : 1;
  });
  EXPECT_EQ(result.exit_code, 0);
}
#endif

TEST_F(FilteredChild, RunsShellPipelines) {
  expect_shell("seq 100 | sort -n | tail -1; (sleep 0 & wait); echo $(( $(seq 3 | wc -l) + 1 ))",
               "100\n4\n");
}

TEST_F(FilteredChild, RunsPythonWithThreadsProcessesAndSockets) {
  expect_shell(R"py(python3 -c '
import threading, subprocess, socket, multiprocessing, asyncio, ctypes, json, sqlite3
t = threading.Thread(target=print, args=("thread",), kwargs={"flush": True}); t.start(); t.join()
print(subprocess.check_output(["echo", "process"]).decode().strip())
a = socket.create_server(("127.0.0.1", 0))
b = socket.create_connection(a.getsockname()); c, _ = a.accept(); b.sendall(b"tcp"); print(c.recv(3).decode())
u, v = socket.socketpair(); u.send(b"unix"); print(v.recv(4).decode())
socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).close()
with multiprocessing.get_context("fork").Pool(2) as pool: print(pool.map(abs, [-1, -2]))
print(asyncio.run(asyncio.sleep(0, "asyncio")))
')py",
               "thread\nprocess\ntcp\nunix\n[1, 2]\nasyncio\n");
}

TEST_F(FilteredChild, RunsNodeWithWorkersAndChildProcesses) {
  if (shell("command -v node").exit_code != 0) GTEST_SKIP() << "no node on this host";
  expect_shell(R"js(node -e '
const { Worker } = require("worker_threads");
const { execFileSync } = require("child_process");
console.log(execFileSync("echo", ["process"]).toString().trim());
new Worker("require(\"worker_threads\").parentPort.postMessage(42)",
               {eval : true})
      .on("message", console.log);
')js",
               "process\n42\n");
}

TEST_F(FilteredChild, RunsGit) {
  if (shell("command -v git").exit_code != 0) GTEST_SKIP() << "no git on this host";
  expect_shell(
      "set -e; d=$(mktemp -d); trap 'rm -rf \"$d\"' EXIT; cd \"$d\"; git init -q .; echo x > f; "
      "git add f; git -c user.name=a -c user.email=a@b commit -qm one; git log --format=%s; "
      "git clone -q . copy; ls copy",
      "one\nf\n");
}

TEST_F(FilteredChild, InstallsPackagesAsAptAndTarDo) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to change owners";
  expect_shell(
      "set -e; d=$(mktemp -d); trap 'rm -rf \"$d\"' EXIT; cd \"$d\"; mkfifo p; echo x > f; "
      "chown 1:1 f; chmod 4755 f; ln f g; ln -s f h; touch -h -d @0 h; tar cf t.tar f g h p; "
      "mkdir o; tar xpf t.tar -C o; stat -c '%u:%g %a' o/f; "
      "python3 -c 'import os; os.setgroups([7]); os.setresgid(7, 7, 7); os.setresuid(8, 8, 8); "
      "print(os.getuid(), os.getgid())'; flock f echo locked",
      "1:1 4755\n8 7\nlocked\n");
}

}  // namespace
}  // namespace atl
