#include "http/server_metrics.h"

#include <gmock/gmock.h>

#include "http/client_websocket.h"
#include "http/http_test_support.h"

namespace atl::http {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::TestServer;

class ServerMetricsTest : public ::testing::Test {
 protected:
  static ServerOptions observed(const std::shared_ptr<ServerObserver>& observer) {
    ServerOptions options;
    options.max_connections = 3;
    options.observer = observer;
    return options;
  }
  static void routes(Router& router) {
    testing::add_basic_routes(router);
    router.add("GET", "/items/{id}", [](Request&, ResponseWriter& writer) -> Task<void> {
      co_await writer.start(200, {});
      co_await writer.write("12345");
      co_await writer.write("67890");
      co_await writer.finish();
    });
    router.add("GET", "/busy", [](Request&, ResponseWriter& writer) -> Task<void> {
      co_await writer.start(200, {});
      co_await writer.write("busy");
      co_await writer.closed();
    });
    router.add("GET", "/cut", [](Request&, ResponseWriter& writer) -> Task<void> {
      co_await writer.start(200, {}, 100);
      co_await writer.write("12345");
    });
    router.add("GET", "/socket", [](Request&, ResponseWriter& writer) -> Task<void> {
      auto socket = co_await writer.upgrade_websocket({});
      if (socket) co_await (*socket)->close(CloseCode::Normal, "");
    });
  }
  // Reports come after the answer: a request that follows on the server's thread sees them.
  std::string text() {
    server_.run([] {});
    return registry_.render();
  }

  MetricsRegistry registry_;
  TestServer server_{routes, observed(std::make_shared<ServerMetrics>(registry_))};
};

TEST_F(ServerMetricsTest, CountsRequestsByRouteAndStatus) {
  auto client = server_.client();
  for (const char* id : {"a", "b"}) ASSERT_TRUE(client.request("GET", std::string("/items/") + id));
  ASSERT_TRUE(client.request("GET", "/nowhere/1"));
  ASSERT_TRUE(client.request("GET", "/nowhere/2"));
  ASSERT_TRUE(client.request("BREW", "/hello"));
  std::string found = text();
  EXPECT_THAT(found, HasSubstr(R"(atoll_http_requests_total{method="GET",route="/items/{id}",)"
                               R"(status="200"} 2)"));
  EXPECT_THAT(found, HasSubstr(R"(requests_total{method="GET",route="other",status="404"} 2)"));
  EXPECT_THAT(found, HasSubstr(R"(requests_total{method="other",route="other",status="405"} 1)"));
  EXPECT_THAT(found, HasSubstr(R"(duration_seconds_count{method="GET",route="/items/{id}"} 2)"));
  EXPECT_THAT(found, Not(HasSubstr("nowhere")));
  EXPECT_THAT(found, Not(HasSubstr("BREW")));
}

TEST_F(ServerMetricsTest, CountsBytesAndWhatWasCutShort) {
  auto client = server_.client();
  ASSERT_EQ(client.request("GET", "/items/a")->body.size(), 10u);
  EXPECT_FALSE(client.request("GET", "/cut"));
  ASSERT_TRUE(client.request("HEAD", "/hello"));
  std::string found = text();
  EXPECT_THAT(found, HasSubstr("atoll_http_response_body_bytes_total 15\n"));
  EXPECT_THAT(found, HasSubstr("atoll_http_incomplete_responses_total 1\n"));
}

TEST_F(ServerMetricsTest, CountsHeadsThatCouldNotBeRead) {
  auto raw = server_.connect();
  raw.send("NONSENSE\r\n\r\n");
  EXPECT_TRUE(raw.read_to_end().starts_with("HTTP/1.1 400"));
  EXPECT_THAT(text(), HasSubstr(R"({method="other",route="other",status="400"} 1)"));
}

TEST_F(ServerMetricsTest, CountsWebSockets) {
  auto client = server_.client();
  auto socket = client.websocket("/socket");
  ASSERT_TRUE(socket);
  EXPECT_FALSE(socket->receive());
  while (server_.connection_count() > 0) std::this_thread::yield();
  EXPECT_THAT(text(), HasSubstr(R"({method="GET",route="/socket",status="101"} 1)"));
}

TEST_F(ServerMetricsTest, CountsConnections) {
  // Idle ones would make room for a newcomer.
  auto busy = [&] {
    auto raw = server_.connect();
    raw.send("GET /busy HTTP/1.1\r\nHost: h\r\n\r\n").read_until("busy");
    return raw;
  };
  auto first = busy();
  auto second = busy();
  auto third = busy();
  EXPECT_TRUE(server_.connect().read_to_end().starts_with("HTTP/1.1 503"));
  third.close();
  while (server_.connection_count() > 2) std::this_thread::yield();
  std::string found = text();
  EXPECT_THAT(found, HasSubstr(R"(atoll_http_connections{transport="unix"} 2)"));
  EXPECT_THAT(found, HasSubstr(R"(atoll_http_connections_total{transport="unix"} 3)"));
  EXPECT_THAT(found, HasSubstr(R"(atoll_http_connections_refused_total{transport="unix"} 1)"));
  EXPECT_THAT(found, HasSubstr(R"(atoll_http_connections{transport="tcp"} 0)"));
}

}  // namespace
}  // namespace atl::http
