#include "code/replays.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

namespace atl::code {
namespace {

int64_t now_ms = 0;

class ReplaysTest : public testing::Test {
 protected:
  Replays::Maker making(std::string text, bool keep = true) {
    return [this, text, keep]() -> Task<Result<Replays::Answer>> {
      made_++;
      co_return Replays::Answer{.text = std::make_shared<const std::string>(text), .keep = keep};
    };
  }
  std::string ask(const std::string& key, Replays::Maker make) {
    std::string got;
    boost::asio::co_spawn(
        io_,
        [&]() -> Task<void> {
          auto answer = co_await replays_->once(key, make);
          got = answer ? **answer : answer.error().message();
        },
        boost::asio::detached);
    io_.restart();
    io_.run();
    return got;
  }

  boost::asio::io_context io_;
  std::shared_ptr<Replays> replays_ = std::make_shared<Replays>([] { return now_ms; });
  int made_ = 0;
};

TEST_F(ReplaysTest, TheSameKeyGetsTheSameAnswer) {
  EXPECT_EQ(ask("k", making("one")), "one");
  EXPECT_EQ(ask("k", making("two")), "one");
  EXPECT_EQ(ask("other", making("three")), "three");
  EXPECT_EQ(made_, 2);
}

TEST_F(ReplaysTest, FailuresAreNotKept) {
  auto failing = [this]() -> Task<Result<Replays::Answer>> {
    made_++;
    co_return fail(ErrorCode::Internal, "no");
  };
  EXPECT_EQ(ask("k", failing), "no");
  EXPECT_EQ(ask("k", making("bad", false)), "bad");
  EXPECT_EQ(ask("k", making("good")), "good");
  EXPECT_EQ(made_, 3);
}

TEST_F(ReplaysTest, OldOnesAreForgotten) {
  EXPECT_EQ(ask("k", making("one")), "one");
  now_ms += Replays::kKeptMs + 1;
  EXPECT_EQ(ask("k", making("two")), "two");
}

TEST_F(ReplaysTest, MemoryIsBounded) {
  for (int i = 0; i < 20; i++) ask(std::to_string(i), making(std::string(8u << 20, 'x')));
  EXPECT_LE(replays_->bytes(), Replays::kMostBytes);
  EXPECT_EQ(ask("0", making("again")), "again");
}

}  // namespace
}  // namespace atl::code
