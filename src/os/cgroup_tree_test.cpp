#include "os/cgroup_tree.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "os/file.h"

namespace atl::os {
namespace {

class Child {
 public:
  explicit Child(const std::function<void()>& work) : pid_(fork()) {
    if (pid_ != 0) return;
    for (;;) work();
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

// Of a sandbox: its agent in the group itself, a command that never rests in one below.
class FreezeTest : public ::testing::Test {
 protected:
  static constexpr const char* kGroup = "frozen";
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "making control groups needs root";
    auto tree = CgroupTree::open(*detect_cgroups(), name_);
    ASSERT_TRUE(tree) << tree.error().message();
    tree_ = std::make_unique<CgroupTree>(std::move(*tree));
    ASSERT_TRUE(tree_->create(kGroup, 0));
    ASSERT_TRUE(tree_->make_subgroup(kGroup, "command", 0));
  }
  void TearDown() override {
    if (tree_ == nullptr) return;
    while (!tree_->remove(kGroup)) usleep(1000);
    tree_->remove_tree();
  }
  bool is_frozen(const char* file) {
    auto dir = tree_->open_unified(kGroup);
    auto text = read_file_at(dir->get(), file);
    return text && text->find("frozen 1") != std::string::npos;
  }

  std::string name_ = "atoll-unit-" + std::to_string(getpid());
  std::unique_ptr<CgroupTree> tree_;
};

TEST_F(FreezeTest, GroupsBelowAreFrozenToo) {
  Child agent([] { pause(); });
  Child command([] { (void)getppid(); });
  ASSERT_TRUE(tree_->move_process(kGroup, ".", agent.pid()));
  ASSERT_TRUE(tree_->move_process(kGroup, "command", command.pid()));
  for (int i = 0; i < 300; i++) {
    ASSERT_TRUE(tree_->freeze(kGroup, true));
    ASSERT_TRUE(tree_->await_frozen(kGroup, std::chrono::seconds(10)));
    ASSERT_TRUE(is_frozen("cgroup.events") && is_frozen("command/cgroup.events")) << i;
    ASSERT_TRUE(tree_->freeze(kGroup, false));
  }
}

}  // namespace
}  // namespace atl::os
