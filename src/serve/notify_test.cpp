#include "serve/notify.h"

#include <gtest/gtest.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <filesystem>
#include <string>

namespace atl::serve {
namespace {

// What a service manager does: a datagram socket, by path or abstract.
class NotifierTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    char name[] = "/tmp/atoll-notify-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    dir_ = name;
    std::string path = GetParam() + dir_ + "/socket";
    manager_.reset(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    if (path[0] == '@') address.sun_path[0] = '\0';
    auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
    ASSERT_EQ(bind(manager_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    setenv("NOTIFY_SOCKET", path.c_str(), 1);
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
  }
  void TearDown() override {
    unsetenv("NOTIFY_SOCKET");
    std::filesystem::remove_all(dir_);
  }

  // Empty where nothing has come.
  std::string received() {
    char buffer[256];
    ssize_t size = recv(manager_.get(), buffer, sizeof buffer, 0);
    return size < 0 ? std::string() : std::string(buffer, static_cast<size_t>(size));
  }

  std::string dir_;
  UniqueFd manager_;
};

INSTANTIATE_TEST_SUITE_P(Sockets, NotifierTest, testing::Values("", "@"));

TEST_P(NotifierTest, SendsOneDatagramAState) {
  Notifier notifier = Notifier::from_environment();
  notifier.send("READY=1");
  notifier.send("STOPPING=1");
  EXPECT_EQ(received(), "READY=1");
  EXPECT_EQ(received(), "STOPPING=1");
  EXPECT_EQ(received(), "");
  EXPECT_EQ(notifier.watchdog().count(), 0);
}

TEST_P(NotifierTest, IsNotInheritedByChildren) {
  setenv("WATCHDOG_USEC", "30000000", 1);
  Notifier notifier = Notifier::from_environment();
  EXPECT_EQ(notifier.watchdog(), std::chrono::seconds(30));
  for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) {
    EXPECT_EQ(getenv(name), nullptr) << name;
  }
  Notifier::from_environment().send("READY=1");
  EXPECT_EQ(received(), "");
}

TEST_P(NotifierTest, LeavesTheWatchdogOfAnotherProcessAlone) {
  setenv("WATCHDOG_USEC", "30000000", 1);
  setenv("WATCHDOG_PID", "1", 1);
  EXPECT_EQ(Notifier::from_environment().watchdog().count(), 0);
}

TEST_P(NotifierTest, DoesNotMindAManagerThatIsGone) {
  Notifier notifier = Notifier::from_environment();
  manager_.reset();
  notifier.send("READY=1");
}

TEST(Notifier, IsSilentWithoutASocket) {
  unsetenv("NOTIFY_SOCKET");
  Notifier::from_environment().send("READY=1");
  for (const std::string& bad : {std::string("relative"), "/" + std::string(200, 'x')}) {
    setenv("NOTIFY_SOCKET", bad.c_str(), 1);
    Notifier::from_environment().send("READY=1");
  }
}

}  // namespace
}  // namespace atl::serve
