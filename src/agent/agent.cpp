#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include <algorithm>
#include <utility>

#include "agent/file_channel.h"
#include "agent/file_worker.h"
#include "agent/greeter.h"
#include "agent/spawn.h"
#include "agent/streams.h"

namespace atl::agent {

static Error spawn_error(const SpawnFailure& failure, const SpawnPlan& plan);

// Ended processes whose output and exit code can still be asked for.
static constexpr size_t kKeptProcesses = 256;
static constexpr size_t kAlwaysKept = 4;  // however much they have printed
static constexpr size_t kMaxConnections = 512;
static constexpr uint64_t kLookAgainMs = 2;

class Agent::Acceptor : public Watcher {
 public:
  explicit Acceptor(Agent& agent) : agent_(agent) {}
  void on_ready(uint32_t) override { agent_.accept_all(); }

 private:
  Agent& agent_;
};

class Agent::ChildReaper : public Watcher {
 public:
  explicit ChildReaper(Agent& agent) : agent_(agent) {}
  void on_ready(uint32_t) override { agent_.reap_children(); }

 private:
  Agent& agent_;
};

Agent::Agent(UniqueFd listener, UniqueFd cgroup_root)
    : listener_(std::move(listener)),
      cgroups_(std::move(cgroup_root)),
      acceptor_(std::make_unique<Acceptor>(*this)),
      reaper_(std::make_unique<ChildReaper>(*this)) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigaddset(&child, wire::kWakeSignal);
  signal_fd_.reset(signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC));
  loop_.add(listener_.get(), EPOLLIN, acceptor_.get());
  loop_.add(signal_fd_.get(), EPOLLIN, reaper_.get());
}

void Agent::run() {
  for (;;) {
    uint64_t deadline = next_deadline();
    // Nothing tells of a successful exec: look again soon while one is under way.
    uint64_t soon = starting_.empty() ? 0 : monotonic_ms() + kLookAgainMs;
    if (soon != 0 && (deadline == 0 || soon < deadline)) deadline = soon;
    loop_.run_once(deadline);
    enforce_deadlines();
    if (next_child_.deadline_ms() != 0) next_child_.enforce_deadline(monotonic_ms());
    if (suspended_until_ms_ + lent_until_ms_ != 0) give_up_waiting(monotonic_ms());
    if (!starting_.empty()) settle_started();
    // The answers have gone out by now.
    bool awaited = std::exchange(settings_.awaited, false);
    if (awaited && suspended_until_ms_ == 0) next_child_.restock(settings_.profile);
  }
}

static void note_start_failure(Process& process) {
  if (process.launch == nullptr || process.launch->failure().error == 0) return;
  process.start_error = spawn_error(process.launch->failure(), process.launch->plan());
}

void Agent::settle_started() {
  std::erase_if(starting_, [](const std::shared_ptr<Process>& process) {
    if (process->launch != nullptr && !process->launch->left()) return false;
    note_start_failure(*process);
    process->launch.reset();
    if (process->info.running) prefer_for_oom_kill(process->info.pid);
    return true;
  });
}

void Agent::accept_all() {
  for (;;) {
    UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) return;
    if (connections_.size() >= kMaxConnections) continue;
    adopt(std::make_unique<Greeter>(*this, std::move(fd)));
  }
}

void Agent::adopt(std::unique_ptr<Connection> connection) {
  connections_.push_back(std::move(connection));
  connections_.back()->process_input();
}

void Agent::drop(Connection* connection) {
  auto it = std::find_if(connections_.begin(), connections_.end(),
                         [&](const auto& held) { return held.get() == connection; });
  if (it == connections_.end()) return;
  loop_.destroy_later(std::move(*it));
  connections_.erase(it);
}

// The sandbox's own null device. One that has been replaced by something else is not waited for and
// not handed to commands: the launcher's, which this process was started with, does as well.
static UniqueFd open_null() {
  UniqueFd null(open("/dev/null", O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat info {};
  bool genuine = null.valid() && fstat(null.get(), &info) == 0 && S_ISCHR(info.st_mode) &&
                 info.st_rdev == makedev(1, 3);
  if (!genuine) null.reset(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  fcntl(null.get(), F_SETFL, 0);  // commands expect it without O_NONBLOCK
  return null;
}

Result<void> Agent::configure(const wire::Configure& request) {
  // Told again by a new server: what runs here now must not be able to hold us up.
  if (!null_fd_.valid()) null_fd_ = open_null();
  if (!null_fd_.valid()) return fail_errno("open", "/dev/null");
  // Those we were started with are open on a file outside, which no checkpoint can hold.
  for (int fd : {0, 1, 2}) dup2(null_fd_.get(), fd);
  if (settings_.profile != request.profile) next_child_.send_away();  // it has the other's rights
  settings_ = request;
  if (settings_.workdir.empty()) settings_.workdir = "/workspace";
  ATOLL_ASSIGN(default_account_, find_account(request.default_user));
  configured_ = true;
  if (!settings_.awaited) cgroups_.stock();
  return {};
}

Result<Account> Agent::account_for(const std::string& user) const {
  if (user.empty() || user == default_account_.name) return default_account_;
  return find_account(user);
}

static void set_env(std::vector<std::string>& env, std::string_view name, std::string_view value) {
  std::string entry = std::string(name) + "=" + std::string(value);
  for (std::string& existing : env) {
    if (existing.size() > name.size() && existing[name.size()] == '=' &&
        existing.starts_with(name)) {
      existing = std::move(entry);
      return;
    }
  }
  env.push_back(std::move(entry));
}

std::vector<std::string> Agent::environment_for(const wire::ExecRequest& request,
                                                const Account& account) const {
  std::vector<std::string> env;
  env.reserve(8 + settings_.env.size() + request.env.size());
  env.push_back("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
  env.push_back("HOME=" + account.home);
  env.push_back("USER=" + account.name);
  env.push_back("LOGNAME=" + account.name);
  env.push_back("SHELL=/bin/bash");
  env.push_back("LANG=C.UTF-8");
  if (request.pty) env.push_back("TERM=xterm-256color");
  auto add = [&](const std::vector<std::string>& entries) {
    for (const std::string& entry : entries) {
      size_t equals = entry.find('=');
      if (equals == entry.npos || equals == 0) continue;
      set_env(env, std::string_view(entry).substr(0, equals),
              std::string_view(entry).substr(equals + 1));
    }
  };
  if (!request.clean_env) add(settings_.env);
  add(request.env);
  return env;
}

static Error spawn_error(const SpawnFailure& failure, const SpawnPlan& plan) {
  switch (failure.step) {
    case SpawnFailure::Step::Exec:
      return std::move(
          Error::from_errno(failure.error, "exec", plan.argv[0]).with_field("command"));
    case SpawnFailure::Step::Directory:
      return std::move(Error::from_errno(failure.error, "chdir", plan.cwd)
                           .with_code(ErrorCode::InvalidArgument)
                           .with_field("cwd"));
    case SpawnFailure::Step::Identity:
      return std::move(
          Error::from_errno(failure.error, "switch to user", plan.account.name).with_field("user"));
    case SpawnFailure::Step::Clone:
      if (failure.error == EAGAIN) {
        return Error(ErrorCode::ResourceExhausted,
                     "the sandbox has reached its process limit; end some processes or raise pids");
      }
      return Error::from_errno(failure.error, "clone3");
    case SpawnFailure::Step::Sandbox:
      return Error::from_errno(failure.error, "confine the command");
  }
  return Error(ErrorCode::Internal, "spawn failed");
}

static std::string joined(const std::vector<std::string>& argv) {
  std::string text;
  for (const std::string& argument : argv) {
    if (!text.empty()) text.push_back(' ');
    text.append(argument, 0, 256);
    if (text.size() > 1024) break;
  }
  return text;
}

Result<std::shared_ptr<Process>> Agent::start(const wire::ExecRequest& request) {
  if (!configured_) return fail(ErrorCode::InvalidState, "the sandbox is not set up yet");
  if (request.argv.empty()) {
    return fail(Error(ErrorCode::InvalidArgument, "no command given").with_field("command"));
  }
  ATOLL_ASSIGN(Account account, account_for(request.user));
  ATOLL_ASSIGN(Streams streams, open_streams(request, account));
  SpawnPlan plan{.argv = request.argv,
                 .env = environment_for(request, account),
                 .cwd = resolve_path(settings_.workdir, request.cwd),
                 .account = account};
  plan.stdin_fd = std::move(streams.child_stdin);
  plan.stdout_fd = std::move(streams.child_stdout);
  plan.stderr_fd = std::move(streams.child_stderr);
  plan.null_fd = null_fd_.get();
  plan.controlling_terminal = request.pty;

  uint64_t started_us = monotonic_us();
  auto child = next_child_.take(settings_.profile);
  if (!child) return fail(spawn_error(child.error(), plan));
  auto& [launch, cgroup] = *child;
  pid_t pid = launch->pid();
  launch->begin(std::move(plan));
  // Whoever waits for the end learns of a failed start then; whoever does not must learn it now.
  if (!request.wait) launch->await_exec();
  if (!request.wait && launch->left() && launch->failure().error != 0) {
    cgroups_.release(std::move(cgroup));
    return fail(spawn_error(launch->failure(), launch->plan()));
  }
  auto process = std::make_shared<Process>(loop_, pid);
  process->program = request.argv[0];
  process->info.cwd = launch->plan().cwd;
  process->launch = std::move(launch);
  process->info.label = request.label.empty() ? joined(request.argv) : request.label;
  process->info.user = account.name;
  process->info.pty = request.pty;
  process->info.started_at_ms = wall_clock_ms();
  process->started_us = started_us;
  process->cgroup = std::move(cgroup);
  if (request.timeout_ms != 0) process->deadline_ms = monotonic_ms() + request.timeout_ms;
  process->stdin_fd = std::move(streams.our_stdin);
  process->stdout_pipe.open(std::move(streams.our_stdout));
  if (streams.our_stderr.valid()) process->stderr_pipe.open(std::move(streams.our_stderr));
  // The pid may have belonged to an ended process that is still remembered.
  auto old = std::find_if(processes_.begin(), processes_.end(),
                          [&](const auto& known) { return known->info.pid == pid; });
  if (old != processes_.end()) forget(old);
  processes_.push_back(process);
  starting_.push_back(process);
  forget_oldest();
  return process;
}

Agent::ProcessList::iterator Agent::forget(ProcessList::iterator process) {
  cgroups_.release(std::move((*process)->cgroup));
  return processes_.erase(process);
}

// Ended processes are remembered while there is room, the newest longest.
void Agent::forget_oldest() {
  size_t ended = 0;
  for (const auto& process : processes_) ended += process->info.running ? 0 : 1;
  auto crowded = [&] {
    return ended > kKeptProcesses ||
           (ended > kAlwaysKept && OutputLog::total() > OutputLog::kBudgetBytes);
  };
  for (auto it = processes_.begin(); it != processes_.end() && crowded();) {
    if ((*it)->info.running) {
      ++it;
    } else {
      it = forget(it);
      ended--;
    }
  }
}

std::shared_ptr<Process> Agent::find(int32_t pid) const {
  for (auto it = processes_.rbegin(); it != processes_.rend(); ++it) {
    if ((*it)->info.pid == pid) return *it;
  }
  return nullptr;
}

Result<void> Agent::signal(const wire::SignalRequest& request) {
  auto process = find(request.pid);
  if (process == nullptr) {
    return fail(ErrorCode::NotFound, "no process " + std::to_string(request.pid));
  }
  if (request.tree && request.signal == SIGKILL && process->cgroup != nullptr) {
    process->cgroup->kill();
    return {};
  }
  if (!process->info.running) return {};  // it has ended by itself: nothing left to ask for
  // Each command leads a session and process group of its own.
  pid_t target = request.tree ? -request.pid : request.pid;
  if (::kill(target, request.signal) != 0 && errno != ESRCH) return fail_errno("kill");
  return {};
}

void Agent::reap_children() {
  signalfd_siginfo drained[2];  // equal signals do not queue: one read takes all there is
  ssize_t size = read(signal_fd_.get(), drained, sizeof drained);
  for (size_t i = 0; i * sizeof drained[0] < static_cast<size_t>(size > 0 ? size : 0); i++) {
    if (drained[i].ssi_signo == wire::kWakeSignal) wake();
  }
  bool ended = false;
  for (;;) {
    int status = 0;
    rusage usage{};
    pid_t pid = wait4(-1, &status, WNOHANG | WUNTRACED, &usage);
    if (pid <= 0) break;
    bool stopped = WIFSTOPPED(status);
    if (settle_file_worker(pid, stopped) || next_child_.settle(pid, stopped) || stopped) continue;
    auto process = find(pid);
    if (process == nullptr || !process->info.running) continue;  // an orphan
    uint64_t cpu_us =
        static_cast<uint64_t>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1'000'000 +
        static_cast<uint64_t>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    note_start_failure(*process);
    process->launch.reset();  // and with it our copies of the ends that the command wrote to
    process->ended(status, cpu_us);
    // Background children keep the group: a later kill of this process must still reach them.
    if (process->cgroup != nullptr && !process->cgroup->populated()) {
      cgroups_.release_empty(std::move(process->cgroup));
    }
    ended = true;
  }
  if (ended && suspended_until_ms_ == 0) next_child_.command_ended(settings_.profile);
}

// Whoever stops a process that serves a file wants the server to wait for ever.
bool Agent::settle_file_worker(pid_t pid, bool stopped) {
  auto worker = std::find(file_workers_.begin(), file_workers_.end(), pid);
  if (worker == file_workers_.end()) return false;
  if (stopped) {
    ::kill(pid, SIGKILL);
  } else {
    file_workers_.erase(worker);
  }
  return true;
}

uint64_t Agent::next_deadline() const {
  uint64_t next = next_child_.deadline_ms();
  for (uint64_t limit : {suspended_until_ms_, lent_until_ms_}) {
    if (limit != 0 && (next == 0 || limit < next)) next = limit;
  }
  for (const auto& process : processes_) {
    if (!process->info.running || process->deadline_ms == 0) continue;
    if (next == 0 || process->deadline_ms < next) next = process->deadline_ms;
  }
  return next;
}

void Agent::enforce_deadlines() {
  uint64_t now = 0;
  for (const auto& process : processes_) {
    if (!process->info.running || process->deadline_ms == 0) continue;
    if (now == 0) now = monotonic_ms();
    if (process->deadline_ms > now) continue;
    process->deadline_ms = 0;
    process->info.timed_out = true;
    if (process->cgroup != nullptr) process->cgroup->kill();
    ::kill(-process->info.pid, SIGKILL);
  }
}

void Agent::serve_files(UniqueFd fd, wire::FrameBuffer pending, const wire::FileRequest& first) {
  pid_t pid = fork();
  if (pid == 0) {
    // The listener, other clients' sockets and other commands' pipes are not this child's business.
    dup2(fd.get(), 3);
    syscall(SYS_close_range, 4, ~0u, 0);
    (void)fd.release();
    run_file_worker(UniqueFd(3), std::move(pending),
                    {.workdir = settings_.workdir, .user = default_account_.name}, first);
    _exit(0);
  }
  if (pid > 0) file_workers_.push_back(pid);
  if (pid < 0) {
    FileChannel channel(std::move(fd), std::move(pending));
    (void)channel.send_error(
        Error(ErrorCode::ResourceExhausted,
              "the sandbox has reached its process limit; end some processes or raise pids"));
  }
}

}  // namespace atl::agent
