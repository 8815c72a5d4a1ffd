#include "async/keyed_turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

namespace atl::async {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

class KeyedTurnsTest : public ::testing::Test {
 protected:
  // Takes a turn and keeps it until `end` is set.
  void start(std::string key, std::string name, OneShot<bool>& end) {
    boost::asio::co_spawn(io_, work(std::move(key), std::move(name), end), boost::asio::detached);
    run();
  }
  Task<void> work(std::string key, std::string name, OneShot<bool>& end) {
    auto turn = co_await turns_.take(std::move(key));
    begun_.push_back(name);
    co_await end.wait();
  }
  void finish(OneShot<bool>& end) {
    end.set(true);
    run();
  }
  void run() {
    io_.restart();
    io_.poll();
  }

  boost::asio::io_context io_;
  KeyedTurns turns_;
  std::vector<std::string> begun_;
};

TEST_F(KeyedTurnsTest, OneKeyIsOneAfterAnother) {
  OneShot<bool> first, second, third;
  start("a", "first", first);
  start("a", "second", second);
  start("a", "third", third);
  EXPECT_THAT(begun_, ElementsAre("first"));
  finish(first);
  EXPECT_EQ(begun_.size(), 2u);
  second.set(true);
  third.set(true);
  run();
  EXPECT_THAT(begun_, UnorderedElementsAre("first", "second", "third"));
}

TEST_F(KeyedTurnsTest, OtherKeysDoNotWait) {
  OneShot<bool> first, second;
  start("a", "first", first);
  start("b", "second", second);
  EXPECT_THAT(begun_, ElementsAre("first", "second"));
  finish(first);
  finish(second);
}

}  // namespace
}  // namespace atl::async
