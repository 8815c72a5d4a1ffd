#include "http/origin.h"

#include <gtest/gtest.h>

namespace atl::http {
namespace {

bool allows(std::string origin, std::string host, std::vector<std::string> allowed = {}) {
  Request request;
  request.headers.add("Host", std::move(host));
  request.headers.add("Origin", std::move(origin));
  return is_origin_allowed(request, allowed);
}

TEST(Origin, NoPageIsNoReasonToRefuse) {
  Request request;
  request.headers.add("Host", "box.test");
  EXPECT_TRUE(is_origin_allowed(request, {}));
}

TEST(Origin, PagesOfTheSameHost) {
  EXPECT_TRUE(allows("http://box.test", "box.test"));
  EXPECT_TRUE(allows("http://BOX.test:7777", "box.test:7777"));
  EXPECT_TRUE(allows("https://box.test", "box.test:443"));
  EXPECT_TRUE(allows("http://[::1]:7777", "[::1]:7777"));
}

TEST(Origin, PagesOfOthers) {
  for (const char* origin :
       {"http://evil.test", "https://box.test.evil.test", "http://box.test:8080", "null", "",
        "box.test", "http://box.test@evil.test", "http://evil.test/box.test", "http://", "file://",
        "http://sub.box.test"}) {
    EXPECT_FALSE(allows(origin, "box.test")) << origin;
  }
  EXPECT_FALSE(allows("null", "")) << "no host is nobody's";
}

TEST(Origin, AllowedOnes) {
  std::vector<std::string> allowed = {"https://board.test/path", ""};
  EXPECT_TRUE(allows("https://board.test", "127.0.0.1:7777", allowed));
  EXPECT_TRUE(allows("https://board.test:443", "127.0.0.1:7777", allowed));
  EXPECT_FALSE(allows("http://board.test", "127.0.0.1:7777", allowed)) << "another scheme";
  EXPECT_FALSE(allows("https://other.test", "127.0.0.1:7777", allowed));
  EXPECT_FALSE(allows("", "127.0.0.1:7777", allowed));
}

}  // namespace
}  // namespace atl::http
