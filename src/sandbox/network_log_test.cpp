#include "sandbox/network_log.h"

#include <gtest/gtest.h>

namespace atl::sandbox {
namespace {

NetworkEntry denial(std::string name, int64_t at_ms) {
  NetworkEntry entry;
  entry.protocol = "dns";
  entry.name = std::move(name);
  entry.at_ms = at_ms;
  return entry;
}

TEST(NetworkLog, TheSameDenialIsNewsOnceInTenSeconds) {
  NetworkLog log;
  EXPECT_TRUE(log.is_news(denial("a", 1'000)));
  EXPECT_FALSE(log.is_news(denial("a", 10'999)));
  EXPECT_TRUE(log.is_news(denial("a", 11'000)));
  EXPECT_TRUE(log.is_news(denial("b", 11'000)));
}

TEST(NetworkLog, ManyDenialsAreNotAllNews) {
  NetworkLog log;
  int news = 0;
  for (int i = 0; i < 1000; i++) news += log.is_news(denial(std::to_string(i), 1'000)) ? 1 : 0;
  EXPECT_EQ(news, 32);
  EXPECT_TRUE(log.is_news(denial("later", 12'000)));
}

}  // namespace
}  // namespace atl::sandbox
