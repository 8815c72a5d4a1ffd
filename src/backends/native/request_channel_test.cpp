#include "backends/native/request_channel.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "wire/launcher_messages.h"

namespace atl::native {
namespace {

using namespace std::chrono_literals;

constexpr auto kUsage = static_cast<uint16_t>(wire::LauncherType::Usage);

// Keeps what is sent; the test plays the other end.
class FakeChannel : public RequestChannel {
 public:
  FakeChannel() : RequestChannel("the other end") {}
  using RequestChannel::answer;
  using RequestChannel::fail_all;
  using RequestChannel::RawReply;

  void answer_usage(uint32_t id, uint64_t memory_bytes) {
    wire::UsageReply reply;
    reply.usage.memory_bytes = memory_bytes;
    std::string payload;
    wire::Writer writer(payload);
    writer(reply);
    answer(id, RawReply{.type = kUsage, .payload = payload});
  }

  std::vector<uint32_t> sent;
  bool broken = false;

 private:
  Task<Result<void>> send(std::string bytes) override {
    if (broken) co_return fail(ErrorCode::Unavailable, "broken");
    sent.push_back(wire::parse_header(bytes.data()).id);
    co_return Result<void>();
  }
};

class RequestChannelTest : public testing::Test {
 protected:
  // The reply's memory, or what went wrong.
  void ask(std::string& outcome, ReplyLimit limit = kNoReplyLimit) {
    boost::asio::co_spawn(
        io_,
        [](FakeChannel& channel, std::string& out, ReplyLimit within) -> Task<void> {
          auto reply = co_await channel.call<wire::UsageReply>(wire::UsageRequest{}, within);
          out = reply ? std::to_string(reply->usage.memory_bytes) : reply.error().message();
        }(channel_, outcome, limit),
        boost::asio::detached);
    run_ready();
  }

  void run_ready() {
    io_.restart();
    io_.poll();
  }

  boost::asio::io_context io_;
  FakeChannel channel_;
};

TEST_F(RequestChannelTest, GivesEachRequestTheReplyWithItsId) {
  std::string first, second;
  ask(first);
  ask(second);
  ASSERT_EQ(channel_.sent.size(), 2u);
  channel_.answer_usage(channel_.sent[1], 22);
  run_ready();
  EXPECT_EQ(first, "");
  EXPECT_EQ(second, "22");
  channel_.answer_usage(channel_.sent[0], 11);
  run_ready();
  EXPECT_EQ(first, "11");
}

TEST_F(RequestChannelTest, FailsWhatWaitsWhenTheConnectionEnds) {
  std::string first, second;
  ask(first);
  ask(second, 1h);
  channel_.fail_all(Error(ErrorCode::Unavailable, "hung up"));
  run_ready();
  EXPECT_EQ(first, "hung up");
  EXPECT_EQ(second, "hung up");
}

TEST_F(RequestChannelTest, StopsWaitingAtTheLimitAndDropsTheLateReply) {
  std::string outcome;
  ask(outcome, 1ms);
  io_.restart();
  io_.run();
  EXPECT_EQ(outcome, "the other end does not answer");
  channel_.answer_usage(channel_.sent[0], 11);
  run_ready();
  EXPECT_EQ(outcome, "the other end does not answer");
}

TEST_F(RequestChannelTest, LeavesNoTimerBehindAReplyInTime) {
  std::string outcome;
  ask(outcome, 1h);
  channel_.answer_usage(channel_.sent[0], 11);
  io_.restart();
  io_.run();  // returns only once no timer is left
  EXPECT_EQ(outcome, "11");
}

TEST_F(RequestChannelTest, ReportsARequestThatCannotBeSent) {
  std::string outcome;
  channel_.broken = true;
  ask(outcome);
  EXPECT_EQ(outcome, "broken");
}

TEST_F(RequestChannelTest, RefusesAReplyOfAnotherType) {
  std::string outcome;
  ask(outcome);
  channel_.answer(channel_.sent[0], FakeChannel::RawReply{.type = kUsage + 1, .payload = ""});
  run_ready();
  EXPECT_EQ(outcome, "unexpected reply from the other end");
}

}  // namespace
}  // namespace atl::native
