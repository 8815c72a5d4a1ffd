// A test that dies must not leave its sandboxes to the machine.
#include "cleanup_guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <filesystem>

#include "native_fixture.h"

namespace atl::test {
namespace {

// A fixture that is driven by hand, in a process of its own.
class Doomed : public NativeFixture {
 public:
  // Never returns: is killed in mid-test, with a sandbox at work.
  [[noreturn]] void run_and_die(int report) {
    SetUp();
    auto handle = run(backend().create(input("doomed")));
    SpawnOptions sleeper;
    sleeper.argv = {"/bin/sleep", "300"};
    bool at_work = handle && run((*handle)->session().spawn(sleeper));
    std::string text = (at_work ? "" : "!") + root() + "\n" + cgroup();
    if (write(report, text.data(), text.size()) < 0) _exit(1);
    kill(getpid(), SIGKILL);
    _exit(1);
  }

 private:
  void TestBody() override {}
};

class CleanupGuardTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "sandboxes need root";
    // What the dead leave behind becomes our children, so that we can wait for all of it.
    ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  }
  void TearDown() override { prctl(PR_SET_CHILD_SUBREAPER, 0); }
};

TEST_F(CleanupGuardTest, AKilledTestLeavesNothing) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  UniqueFd report(ends[0]);
  pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) Doomed().run_and_die(ends[1]);
  close(ends[1]);
  char text[512] = {};
  ASSERT_GT(read(report.get(), text, sizeof text - 1), 0);
  std::string said(text);
  ASSERT_NE(said[0], '!') << "the sandbox was not at work";
  std::string root = said.substr(0, said.find('\n'));
  std::string cgroup = said.substr(said.find('\n') + 1);
  int reaped = 0;
  while (waitpid(-1, nullptr, 0) > 0) reaped++;
  EXPECT_GT(reaped, 3) << "itself, its launcher, its guard and an agent";
  EXPECT_FALSE(std::filesystem::exists(root));
  for (const auto& hierarchy : std::filesystem::directory_iterator("/sys/fs/cgroup")) {
    EXPECT_FALSE(std::filesystem::exists(hierarchy.path() / cgroup)) << hierarchy.path();
  }
}

}  // namespace
}  // namespace atl::test
