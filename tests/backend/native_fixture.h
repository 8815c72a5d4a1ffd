// A launcher and a native backend in this process's own corner of the machine: private data
// directory, run directory and control groups. The templates come from ATOLL_TEST_TEMPLATE, a data
// directory that holds `base`. Nothing of it outlives the test, also where that is killed.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>
#include <string>

#include "backends/native/native_backend.h"
#include "cleanup_guard.h"

namespace atl::test {

class NativeFixture : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Runs one coroutine to its end.
  template <class T>
  T run(Task<T> task) {
    std::optional<T> result;
    boost::asio::co_spawn(io_, std::move(task), [&](std::exception_ptr thrown, T value) {
      if (thrown) std::rethrow_exception(thrown);
      result = std::move(value);
      io_.stop();
    });
    io_.restart();
    io_.run();
    return std::move(*result);
  }

  CreateInput input(std::string key, std::string template_key = "base") const;
  native::NativeBackend& backend() { return *backend_; }
  boost::asio::io_context& io() { return io_; }
  const std::string& root() const { return root_; }
  const std::string& cgroup() const { return cgroup_; }

 private:
  void start_launcher();
  void check_nothing_left();

  std::string root_;
  std::string cgroup_;
  pid_t launcher_pid_ = 0;
  std::unique_ptr<CleanupGuard> guard_;
  boost::asio::io_context io_{1};
  std::shared_ptr<native::LauncherClient> launcher_;
  std::unique_ptr<native::NativeBackend> backend_;
};

}  // namespace atl::test
