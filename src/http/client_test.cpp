#include "http/client.h"

#include "http/blocking_socket.h"
#include "http/http_test_support.h"

namespace atl::http {
namespace {

using testing::add_basic_routes;
using testing::TestServer;

TEST(Endpoint, ReadsEveryForm) {
  EXPECT_EQ(Endpoint::parse("unix:/run/x.sock")->unix_path, "/run/x.sock");
  EXPECT_EQ(Endpoint::parse("unix:///run/x.sock")->unix_path, "/run/x.sock");
  EXPECT_EQ(Endpoint::parse("http://h:81/")->authority(), "h:81");
  EXPECT_EQ(Endpoint::parse("http://h")->port, "80");
  EXPECT_EQ(Endpoint::parse("http://[::1]:9")->host, "::1");
  EXPECT_EQ(Endpoint::parse("http://[::1]")->authority(), "[::1]");
  EXPECT_EQ(Endpoint::parse("https://h")->port, "443");
  EXPECT_EQ(Endpoint::parse("https://h")->authority(), "h");
  EXPECT_EQ(Endpoint::parse("https://h:80")->authority(), "h:80");
  EXPECT_TRUE(Endpoint::parse("https://h")->tls);
  EXPECT_FALSE(Endpoint::parse("http://h")->tls);
  EXPECT_FALSE(Endpoint::parse("ftp://h"));
  EXPECT_FALSE(Endpoint::parse("http://"));
  EXPECT_FALSE(Endpoint::parse("http://h:1/path"));
}

TEST(Client, KeepsItsConnection) {
  TestServer server(add_basic_routes);
  auto client = server.client();
  for (int i = 0; i < 10; i++) EXPECT_EQ(client.request("GET", "/hello")->body, "hello");
  EXPECT_EQ(client.request("POST", "/echo", {}, "there")->body, "there");
  EXPECT_EQ(server.connection_count(), 1u);
}

TEST(Client, ReplacesAConnectionThatTheServerDropped) {
  ServerOptions options;
  options.idle_timeout = std::chrono::milliseconds(1);
  TestServer server(add_basic_routes, options);
  auto client = server.client();
  for (int i = 0; i < 20; i++) {
    auto response = client.request("GET", "/hello");
    ASSERT_TRUE(response) << response.error().message();
    while (i % 2 == 0 && server.connection_count() > 0) std::this_thread::yield();
  }
}

TEST(Client, NobodyListeningIsNamed) {
  auto client = *Client::create("unix:/nonexistent/socket");
  auto response = client.request("GET", "/");
  ASSERT_FALSE(response);
  EXPECT_NE(response.error().message().find("/nonexistent/socket"), std::string::npos);
}

TEST(Client, SilentServerTimesOut) {
  TestServer server([](Router& router) {
    router.add("GET", "/never",
               [](Request&, ResponseWriter& writer) -> Task<void> { co_await writer.closed(); });
  });
  ClientOptions options;
  options.io_timeout = std::chrono::milliseconds(50);
  auto response = server.client(options).request("GET", "/never");
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), ErrorCode::Timeout);
}

TEST(Client, ReadsARefusalThatCameBeforeTheBodyWasSent) {
  TestServer server([](Router& router) {
    router.add("POST", "/no", [](Request&, ResponseWriter& writer) -> Task<void> {
      co_await writer.send_error(Error(ErrorCode::PermissionDenied, "no"));
    });
  });
  auto client = server.client();
  auto stream = client.upload("POST", "/no", {}, 64 * 1024 * 1024,
                              [](std::span<char> into) { return Result<size_t>(into.size()); });
  ASSERT_TRUE(stream) << stream.error().message();
  EXPECT_EQ(stream->status(), 403);
}

TEST(Client, RefusesTargetsThatWouldBreakTheRequestLine) {
  TestServer server(add_basic_routes);
  auto client = server.client();
  EXPECT_FALSE(client.request("GET", "/a b"));
  EXPECT_FALSE(client.request("GET", "/a\r\nX: y"));
  EXPECT_FALSE(client.request("GET", "/", {{"X", "a\nb"}}));
  EXPECT_TRUE(client.request("GET", "/hello"));
}

TEST(Client, SeveralThreadsMayShareIt) {
  TestServer server(add_basic_routes);
  auto client = server.client();
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; i++) {
        std::string text = std::to_string(i);
        auto response = client.request("POST", "/echo", {}, text);
        if (response && response->body == text) good++;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 200);
}

}  // namespace
}  // namespace atl::http
