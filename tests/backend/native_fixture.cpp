#include "native_fixture.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "launcher/config.h"

extern "C" {
extern const char atoll_agent_begin[];
extern const char atoll_agent_end[];
}

namespace atl::test {

namespace fs = std::filesystem;

void NativeFixture::SetUp() {
  const char* source = getenv("ATOLL_TEST_TEMPLATE");
  if (geteuid() != 0) GTEST_SKIP() << "sandboxes need root";
  ASSERT_NE(source, nullptr) << "ATOLL_TEST_TEMPLATE must name a data directory with the template";
  // Beside the templates, so that layers can be hard-linked.
  std::string pattern = std::string(source) + "/../backend-test-XXXXXX";
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  root_ = fs::canonical(pattern);
  cgroup_ = "atoll-backend-" + std::to_string(getpid());
  guard_ = std::make_unique<CleanupGuard>(cgroup_, root_);
  std::string data = root_ + "/data";
  fs::create_directories(data);
  fs::create_directories(root_ + "/run/agents");
  fs::create_directories(root_ + "/run/launcher");
  std::string copy = "cp -al " + std::string(source) + "/layers " + data + "/layers && cp -a " +
                     std::string(source) + "/templates " + data + "/templates";
  ASSERT_EQ(system(copy.c_str()), 0);
  start_launcher();
}

void NativeFixture::start_launcher() {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
  launcher_pid_ = fork();
  ASSERT_GE(launcher_pid_, 0);
  if (launcher_pid_ == 0) {
    close(pair[0]);
    guard_->leave_to_parent();
    launcher::LauncherConfig config;
    config.server.reset(pair[1]);
    config.data_dir = root_ + "/data";
    config.run_dir = root_ + "/run";
    config.cgroup_name = cgroup_;
    config.agent = {atoll_agent_begin, static_cast<size_t>(atoll_agent_end - atoll_agent_begin)};
    config.default_limits.memory_bytes = uint64_t{512} << 20;
    config.reserve = 2;
    launcher::run_launcher(std::move(config));
  }
  close(pair[1]);
  launcher_ = std::make_shared<native::LauncherClient>(io_.get_executor(), UniqueFd(pair[0]));
  launcher_->start();
  native::NativeOptions options;
  options.data_dir = root_ + "/data";
  options.run_dir = root_ + "/run";
  backend_ = std::make_unique<native::NativeBackend>(io_.get_executor(), launcher_, options);
  ASSERT_TRUE(run(backend_->start()));
}

void NativeFixture::TearDown() {
  if (launcher_ == nullptr) return;
  auto stop = [this]() -> Task<bool> {
    (void)co_await launcher_->call<wire::LauncherDone>(wire::ShutdownRequest{});
    co_return true;
  };
  run(stop());
  waitpid(launcher_pid_, nullptr, 0);
  // A test that broke off has not ended its sandboxes: that is the guard's to do.
  if (!HasFailure()) check_nothing_left();
  guard_.reset();
}

void NativeFixture::check_nothing_left() {
  for (const char* hierarchy : {"unified", "memory", "pids", "cpu", "cpuacct"}) {
    std::string path = std::string("/sys/fs/cgroup/") + hierarchy + "/" + cgroup_;
    EXPECT_NE(access(path.c_str(), F_OK), 0) << path << " was left behind";
  }
  EXPECT_TRUE(fs::is_empty(root_ + "/run/agents"));
}

CreateInput NativeFixture::input(std::string key, std::string template_key) const {
  CreateInput input;
  input.session_key = std::move(key);
  input.template_key = std::move(template_key);
  input.limits.memory_bytes = uint64_t{512} << 20;
  return input;
}

}  // namespace atl::test
