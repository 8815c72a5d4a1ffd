#include "forked_server.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "http/blocking_socket.h"

namespace atl::bench {

void pin_to_cpu(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof(set), &set);
}

Result<ForkedServer> ForkedServer::start(const std::function<void(const std::string&)>& serve,
                                         int cpu) {
  std::string dir = "/tmp/atoll-bench-http-XXXXXX";
  if (mkdtemp(dir.data()) == nullptr) return fail_errno("mkdtemp");
  std::string path = dir + "/s";
  pid_t pid = fork();
  if (pid < 0) return fail_errno("fork");
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin_to_cpu(cpu);
    serve(path);
    _exit(1);
  }
  ForkedServer server(pid, std::move(path));
  ATOLL_ASSIGN(http::Endpoint endpoint, http::Endpoint::parse(server.endpoint()));
  for (int i = 0; i < 500; i++) {
    if (http::BlockingSocket::connect(endpoint, std::chrono::seconds(1))) return server;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return fail(ErrorCode::Unavailable, "the server does not come up");
}

ForkedServer::ForkedServer(ForkedServer&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), path_(std::move(other.path_)) {}

ForkedServer::~ForkedServer() {
  if (pid_ < 0) return;
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
  unlink(path_.c_str());
  rmdir(path_.substr(0, path_.rfind('/')).c_str());
}

double ForkedServer::cpu_seconds() const {
  clockid_t clock{};
  timespec used{};
  if (clock_getcpuclockid(pid_, &clock) == 0) clock_gettime(clock, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

double ForkedServer::anonymous_kib() const {
  std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return strtod(line.c_str() + 8, nullptr);
  }
  return 0;
}

}  // namespace atl::bench
