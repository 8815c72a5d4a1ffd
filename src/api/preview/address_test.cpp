#include "api/preview/address.h"

#include <gtest/gtest.h>

namespace atl::api::preview {
namespace {

http::Request request_to(std::string host, std::string target = "/") {
  http::Request request;
  request.headers.add("Host", std::move(host));
  request.target = std::move(target);
  return request;
}

TEST(PreviewAddress, ClaimsEveryHostThatLooksLikeAPort) {
  EXPECT_TRUE(is_port_host("3000-sandbox-1.localhost:7777", "localhost", "127.0.0.1"));
  EXPECT_TRUE(is_port_host("3000-SANDBOX-1.LocalHost.", "localhost", "127.0.0.1"));
  EXPECT_TRUE(is_port_host("99999-x.y.localhost", "localhost", "127.0.0.1"));
  for (const char* host : {"localhost", "localhost:1", "web.localhost", "3000.localhost", "",
                           "3000-x.localhost.evil.test", "3000-xlocalhost", "127.0.0.1:7777"}) {
    EXPECT_FALSE(is_port_host(host, "localhost", "127.0.0.1")) << host;
  }
  EXPECT_FALSE(is_port_host("10-0-0-5.example.org", "example.org", "10-0-0-5.example.org"));
  EXPECT_FALSE(is_port_host("3000-x.", "", ""));
}

TEST(PreviewAddress, LeavesTheDaemonsPortToIt) {
  EXPECT_FALSE(is_port_host("49983-sandbox-1.localhost", "localhost", ""));
  EXPECT_FALSE(is_port_host("49999-sandbox-1.localhost", "localhost", ""));
  EXPECT_TRUE(is_port_host("49983-x.localhost", "localhost", ""));
}

TEST(PreviewAddress, IsReadFromTheHost) {
  auto found = address_by_host(request_to("3000-sandbox-1.localhost:7777", "/a?b"), "localhost");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->sandbox, "sandbox-1");
  EXPECT_EQ(found->port, 3000);
  EXPECT_EQ(found->target, "/a?b");
  EXPECT_EQ(found->prefix(), "");
  for (const char* host : {"0-x.localhost", "65536-x.localhost", "03-x.localhost", "3-.localhost",
                           "3-x.y.localhost", "3--x.localhost", "3-x_y.localhost"}) {
    EXPECT_FALSE(address_by_host(request_to(host), "localhost")) << host;
  }
  auto absolute = address_by_host(request_to("1-x.localhost", "http://other/p?q"), "localhost");
  ASSERT_TRUE(absolute);
  EXPECT_EQ(absolute->target, "/p?q");
}

TEST(PreviewAddress, IsReadFromThePath) {
  auto found = address_by_path(request_to("h", "/preview/sandbox-1/3000/a/../b?c"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->target, "/a/../b?c");
  EXPECT_EQ(found->prefix(), "/preview/sandbox-1/3000");
  EXPECT_EQ(address_by_path(request_to("h", "/preview/x/1"))->target, "/");
  EXPECT_EQ(address_by_path(request_to("h", "/preview/x/1?q"))->target, "/?q");
  for (const char* target :
       {"/preview", "/preview/", "/preview/x", "/preview/x/", "/preview/x/0/", "/preview/x/1x/",
        "/preview//1/", "/preview/../1/", "/previewx/x/1/"}) {
    EXPECT_FALSE(address_by_path(request_to("h", target))) << target;
  }
  EXPECT_TRUE(is_port_path("/preview"));
  EXPECT_TRUE(is_port_path("/preview/../v1"));
  EXPECT_FALSE(is_port_path("/%70review/x/1/"));
  EXPECT_FALSE(is_port_path("/previews"));
}

std::string without_t(std::string_view target) {
  return without_parameters(target,
                            [](auto name, auto value) { return name == "t" || value == "secret"; });
}

TEST(PreviewAddress, LosesParametersAndNothingElse) {
  EXPECT_EQ(without_t("/a?x=1&t=2&y=%2F"), "/a?x=1&y=%2F");
  EXPECT_EQ(without_t("/a?t=2"), "/a");
  EXPECT_EQ(without_t("/a?%74=2&tt=3&t"), "/a?tt=3");
  EXPECT_EQ(without_t("/a"), "/a");
  EXPECT_EQ(without_t("/a?"), "/a?");
  EXPECT_EQ(without_t("/a?&&x"), "/a?&&x");
  EXPECT_EQ(without_t("/a?b=s%65cret&c=secrets&secret"), "/a?c=secrets&secret");
}

}  // namespace
}  // namespace atl::api::preview
