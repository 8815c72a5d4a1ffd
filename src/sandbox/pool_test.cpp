#include "sandbox/pool.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "async/one_shot.h"
#include "base/unique_fd.h"

namespace atl::sandbox {
namespace {

using std::chrono::milliseconds;

class FakeHandle : public SandboxHandle {
 public:
  explicit FakeHandle(int& alive) : alive_(alive) { alive_++; }

  SandboxSession& session() override { abort(); }
  SessionState capture_state() const override { return {}; }
  BuildTimings timings() const override { return {}; }
  Task<Result<void>> ready() override { co_return Result<void>(); }
  void assign(CreateInput) override {}
  Task<Result<void>> set_limits(Limits) override { co_return Result<void>(); }
  Task<Result<void>> set_frozen(bool) override { co_return Result<void>(); }
  Task<Result<UniqueFd>> dial(uint16_t, milliseconds) override { co_return UniqueFd(); }
  Task<Result<HostUsage>> usage() override { co_return HostUsage(); }
  Task<Result<void>> dispose() override { return destroy(); }
  Task<Result<void>> destroy() override {
    alive_--;
    co_return Result<void>();
  }

 private:
  int& alive_;
};

class FakeBackend : public SandboxBackend {
 public:
  const std::string& name() const override { return name_; }
  Task<Result<PrewarmResult>> prewarm(PrewarmInput) override { co_return PrewarmResult(); }
  Task<Result<std::shared_ptr<SandboxHandle>>> create(CreateInput) override {
    co_return std::make_shared<FakeHandle>(alive);
  }
  Task<Result<void>> discard(std::string) override { co_return Result<void>(); }
  void on_ended(std::function<void(EndedSandbox)>) override {}
  Task<Result<CopyTimings>> keep_state(std::string, std::string) override { return unused(); }
  Task<Result<CopyTimings>> copy_state(std::string, std::string) override { return unused(); }
  Task<Result<CopyTimings>> copy_files(std::string, std::string) override { return unused(); }
  Task<Result<void>> restore_state(std::string, std::string) override { co_return Result<void>(); }
  Task<Result<void>> drop_state(std::string) override { co_return Result<void>(); }
  Task<Result<Difference>> diff_states(DiffInput) override { co_return Difference{}; }
  static Task<Result<CopyTimings>> unused() { co_return CopyTimings{}; }
  Task<Result<void>> reclaim(Known) override { co_return Result<void>(); }
  std::vector<std::string> degraded() const override { return {}; }

  int alive = 0;

 private:
  std::string name_ = "fake";
};

// Passes when the test says so.
class FakeTime {
 public:
  Task<void> sleep(milliseconds time) {
    auto over = std::make_shared<async::OneShot<bool>>();
    sleepers_.emplace(now_ + time, over);
    co_await over->wait();
  }
  // Up to the next that sleeps, where that is not beyond `end`.
  bool advance_to_next(milliseconds end) {
    if (sleepers_.empty() || sleepers_.begin()->first > end) {
      now_ = end;
      return false;
    }
    auto first = sleepers_.extract(sleepers_.begin());
    now_ = first.key();
    first.mapped()->set(true);
    return true;
  }
  milliseconds now() const { return now_; }
  bool anybody_sleeps() const { return !sleepers_.empty(); }

 private:
  milliseconds now_{0};
  std::multimap<milliseconds, std::shared_ptr<async::OneShot<bool>>> sleepers_;
};

class PoolTest : public testing::Test {
 protected:
  PoolTest() { make_pool(); }
  ~PoolTest() override { drain(); }

  void drain() {
    boost::asio::co_spawn(
        io_, [this]() -> Task<void> { return pool_->drain(); }, boost::asio::detached);
    pass(std::chrono::hours(1));
    EXPECT_EQ(backend_.alive, 0);
  }

  void make_pool() {
    pool_ = std::make_shared<Pool>(io_.get_executor(), backend_, options_,
                                   [this](milliseconds time) { return time_.sleep(time); });
    pool_->warm("base");
    run_ready();
  }
  void run_ready() {
    io_.restart();
    io_.poll();
  }
  void pass(milliseconds time) {
    milliseconds end = time_.now() + time;
    do {
      run_ready();
    } while (time_.advance_to_next(end));
  }
  size_t ready() const {
    auto sizes = pool_->sizes();
    return sizes.contains("base") ? sizes.at("base") : 0;
  }
  // Takes and destroys, then lets the pool refill.
  void demand(int count) {
    std::vector<std::shared_ptr<SandboxHandle>> taken;
    for (int i = 0; i < count; i++) {
      if (auto handle = pool_->take("base")) taken.push_back(std::move(handle));
    }
    for (const auto& handle : taken) {
      boost::asio::co_spawn(io_, handle->destroy(), boost::asio::detached);
    }
    pool_->warm("base");
    run_ready();
  }

  boost::asio::io_context io_;
  FakeBackend backend_;
  FakeTime time_;
  PoolOptions options_{.target = 2, .maximum = 16, .limits = {}, .idle = std::chrono::minutes(1)};
  std::shared_ptr<Pool> pool_;
};

TEST_F(PoolTest, KeepsItsTargetReadyAndNoTimer) {
  EXPECT_EQ(ready(), 2u);
  demand(2);
  EXPECT_EQ(ready(), 2u);
  EXPECT_FALSE(time_.anybody_sleeps());
}

TEST_F(PoolTest, GrowsUnderDemandUpToItsMaximum) {
  demand(3);
  EXPECT_EQ(ready(), 4u);
  demand(100);
  EXPECT_EQ(ready(), 16u);
}

TEST_F(PoolTest, ShrinksSlowlyWhenTheDemandIsOver) {
  demand(100);
  ASSERT_EQ(ready(), 16u);
  pass(std::chrono::seconds(119));  // in the first minute all were needed
  EXPECT_EQ(ready(), 16u);
  pass(milliseconds(1050));
  EXPECT_EQ(ready(), 15u);
  pass(std::chrono::seconds(10));  // half of the 14 beyond the target
  EXPECT_EQ(ready(), 9u);
  pass(std::chrono::minutes(10));
  EXPECT_EQ(ready(), 2u);
  EXPECT_EQ(backend_.alive, 2);
  EXPECT_FALSE(time_.anybody_sleeps());
}

TEST_F(PoolTest, KeepsWhatIsStillNeeded) {
  demand(100);
  ASSERT_EQ(ready(), 16u);
  for (int minute = 0; minute < 30; minute++) {
    demand(10);
    pass(std::chrono::minutes(1));
  }
  EXPECT_EQ(ready(), 10u);
}

TEST_F(PoolTest, NeverFallsBelowATargetBeyondTheMaximum) {
  options_.maximum = 1;
  drain();
  make_pool();
  demand(100);
  EXPECT_EQ(ready(), 2u);
}

TEST_F(PoolTest, GrowsAgainAfterShrinking) {
  demand(100);
  pass(std::chrono::minutes(30));
  ASSERT_EQ(ready(), 2u);
  demand(100);
  EXPECT_EQ(ready(), 16u);
  pass(std::chrono::minutes(30));
  EXPECT_EQ(ready(), 2u);
}

}  // namespace
}  // namespace atl::sandbox
