#include "criu/program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/scope_exit.h"
#include "os/fd_passing.h"
#include "os/parent_death.h"

namespace atl::criu {
namespace {

constexpr size_t kMaxMessage = 64u << 10;

// tar, which packs what lies in a tmpfs, must find a gzip that does not spend its time on packing.
constexpr const char* kPath = "PATH=/criu-bin:/usr/sbin:/usr/bin:/sbin:/bin";

[[noreturn]] void exec_criu(const Program& program, int socket, const std::vector<int>& keep) {
  // Whatever the launcher has ignored or blocked is none of the restored processes' business.
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);  // when it finds us gone it has things to put in order
  int null = open("/dev/null", O_RDWR);
  for (int fd : {0, 1, 2}) dup2(null, fd);
  fcntl(socket, F_SETFD, 0);
  for (int fd : keep) fcntl(fd, F_SETFD, 0);
  std::string loader = program.dir + "/lib/loader", libraries = program.dir + "/lib";
  std::string criu = program.dir + "/criu", number = std::to_string(socket);
  char path[64];
  snprintf(path, sizeof path, "%s", kPath);
  char* environment[] = {path, nullptr};
  execle(loader.c_str(), "criu", "--library-path", libraries.c_str(), criu.c_str(), "swrk",
         number.c_str(), nullptr, environment);
  _exit(127);
}

Result<Response> converse(int socket, const Request& request, const OnStep& on_step) {
  ATOLL_TRY(os::send_with_fds(socket, encode_request(request), {}));
  for (;;) {
    ATOLL_ASSIGN(auto message, os::receive_with_fds(socket, kMaxMessage, 4));
    if (message.bytes.empty()) return fail(ErrorCode::Internal, "criu ended without an answer");
    ATOLL_ASSIGN(Response response, decode_response(message.bytes));
    if (response.verb != Verb::Notify) return response;
    Result<void> done;
    if (on_step) done = on_step(response);
    ATOLL_TRY(os::send_with_fds(socket, encode_notified(done.has_value()), {}));
    if (!done) return fail(std::move(done).error());
  }
}

}  // namespace

Result<Response> run(const Program& program, const Request& request, const std::vector<int>& keep,
                     const OnStep& on_step) {
  ATOLL_ASSIGN(os::SocketPair pair, os::make_socket_pair());
  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid < 0) return fail_errno("fork", "criu");
  if (pid == 0) {
    // What it restores is worth nothing without us. But processes that it is dumping may be running
    // its code: it must let go of them in order, and does so when it finds us gone.
    if (request.verb == Verb::Restore) os::die_with_parent(parent);
    exec_criu(program, pair.theirs.get(), keep);
  }
  pair.theirs.reset();
  auto response = converse(pair.ours.get(), request, on_step);
  pair.ours.reset();
  // One that was told of a failure, or hears nothing more, gives up by itself.
  if (!response && request.verb == Verb::Restore) kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  return response;
}

}  // namespace atl::criu
