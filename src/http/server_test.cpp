#include "http/server.h"

#include <netinet/in.h>
#include <sys/stat.h>

#include "http/http_test_support.h"

namespace atl::http {
namespace {

using testing::add_basic_routes;
using testing::TestServer;

size_t count(std::string_view text, std::string_view needle) {
  size_t found = 0;
  for (size_t at = text.find(needle); at != std::string_view::npos;
       at = text.find(needle, at + 1)) {
    found++;
  }
  return found;
}

TEST(Server, AnswersRequestsOneAfterAnotherOnOneConnection) {
  TestServer server(add_basic_routes);
  auto raw = server.connect();
  for (int i = 0; i < 3; i++) {
    raw.send("GET /hello HTTP/1.1\r\nHost: h\r\n\r\n");
    std::string response = raw.read_until("hello");
    EXPECT_TRUE(response.starts_with("HTTP/1.1 200 OK\r\n")) << response;
    EXPECT_NE(response.find("Content-Length: 5\r\n"), std::string::npos);
  }
  EXPECT_EQ(server.connection_count(), 1u);
}

TEST(Server, PipelinedRequestsAreAnsweredInOrder) {
  TestServer server(add_basic_routes);
  auto raw = server.connect();
  raw.send(
      "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nfirst"
      "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nsec\r\n3\r\nond\r\n0\r\n\r\n"
      "\r\nGET /nowhere HTTP/1.1\r\nHost: h\r\n\r\n"
      "POST /echo HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 6\r\n\r\nfourth");
  std::string all = raw.read_to_end();
  size_t first = all.find("\r\n\r\nfirst");
  size_t second = all.find("\r\n\r\nsecond");
  size_t third = all.find("404 Not Found");
  size_t fourth = all.find("\r\n\r\nfourth");
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
  EXPECT_LT(third, fourth);
  EXPECT_NE(fourth, std::string::npos) << all;
  EXPECT_EQ(count(all, "HTTP/1.1 "), 4u);
}

TEST(Server, BodyThatTheHandlerIgnoredIsNoRequest) {
  TestServer server([](Router& router) {
    router.add("POST", "/ignore", [](Request&, ResponseWriter& writer) -> Task<void> {
      co_await writer.send(Response::text("ignored"));
    });
    add_basic_routes(router);
  });
  auto raw = server.connect();
  std::string inner = "GET /hello HTTP/1.1\r\nHost: h\r\n\r\n";
  raw.send("POST /ignore HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(inner.size()) +
           "\r\n\r\n" + inner + "POST /echo HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" +
           "Content-Length: 4\r\n\r\nlast");
  std::string all = raw.read_to_end();
  EXPECT_EQ(count(all, "HTTP/1.1 200"), 2u) << all;
  EXPECT_TRUE(all.ends_with("last"));
}

TEST(Server, TooLongAnIgnoredBodyClosesTheConnection) {
  ServerOptions options;
  options.max_drain_bytes = 1000;
  TestServer server(
      [](Router& router) {
        router.add("POST", "/ignore", [](Request&, ResponseWriter& writer) -> Task<void> {
          co_await writer.send(Response::text("ignored"));
        });
      },
      options);
  auto raw = server.connect();
  raw.send("POST /ignore HTTP/1.1\r\nHost: h\r\nContent-Length: 5000\r\n\r\n");
  std::string all = raw.read_to_end();
  EXPECT_NE(all.find("Connection: close\r\n"), std::string::npos) << all;
  EXPECT_TRUE(all.ends_with("ignored"));
}

TEST(Server, ContinueIsSentWhenTheBodyIsWanted) {
  TestServer server(add_basic_routes);
  auto raw = server.connect();
  raw.send("POST /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(raw.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  raw.send("ok");
  EXPECT_TRUE(raw.read_until("ok").starts_with("HTTP/1.1 200"));
}

TEST(Server, ContinueIsNotSentWhenTheBodyIsRefused) {
  TestServer server(add_basic_routes);
  auto raw = server.connect();
  raw.send("POST /no HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  std::string all = raw.read_to_end();
  EXPECT_TRUE(all.starts_with("HTTP/1.1 404")) << all;
  EXPECT_NE(all.find("Connection: close\r\n"), std::string::npos);
}

TEST(Server, BodyOverTheHandlersLimitIsTooLarge) {
  TestServer server(add_basic_routes);
  auto response = server.client().request("POST", "/echo", {}, std::string(2 * 1024 * 1024, 'x'));
  ASSERT_TRUE(response) << response.error().message();
  EXPECT_EQ(response->status, 413);
}

TEST(Server, RefusalsCloseTheConnectionWithJson) {
  TestServer server(add_basic_routes);
  auto raw = server.connect();
  raw.send(
      "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n"
      "\r\n0\r\n\r\nGET /hello HTTP/1.1\r\nHost: h\r\n\r\n");
  std::string all = raw.read_to_end();
  EXPECT_TRUE(all.starts_with("HTTP/1.1 400 Bad Request\r\n")) << all;
  EXPECT_EQ(count(all, "HTTP/1.1 "), 1u);
  EXPECT_NE(all.find(R"({"success":false,"error":{"code":"VALIDATION_ERROR")"), std::string::npos);
}

TEST(Server, MalformedChunkInABodyEndsTheConnection) {
  TestServer server(add_basic_routes);
  auto raw = server.connect();
  raw.send(
      "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
      "ffffffffffffffff1\r\nx\r\n0\r\n\r\nGET /hello HTTP/1.1\r\nHost: h\r\n\r\n");
  std::string all = raw.read_to_end();
  EXPECT_TRUE(all.starts_with("HTTP/1.1 400")) << all;
  EXPECT_EQ(count(all, "HTTP/1.1 "), 1u);
}

TEST(Server, WrongMethodSaysWhichAreAllowed) {
  TestServer server(add_basic_routes);
  auto response = server.client().request("DELETE", "/hello");
  EXPECT_EQ(response->status, 405);
  EXPECT_EQ(response->headers.get("Allow"), "GET, HEAD");
}

TEST(Server, HeadHasTheLengthAndNoBody) {
  TestServer server(add_basic_routes);
  auto client = server.client();
  for (int i = 0; i < 2; i++) {
    auto response = client.request("HEAD", "/hello");
    ASSERT_TRUE(response);
    EXPECT_EQ(response->headers.get("Content-Length"), "5");
    EXPECT_EQ(response->body, "");
  }
  EXPECT_EQ(server.connection_count(), 1u);
}

TEST(Server, OldHttpGetsTheBodyUntilTheEnd) {
  TestServer server([](Router& router) {
    router.add("GET", "/stream", [](Request&, ResponseWriter& writer) -> Task<void> {
      co_await writer.start(200, {});
      co_await writer.write("one");
      co_await writer.write("two");
      co_await writer.finish();
    });
  });
  auto raw = server.connect();
  raw.send("GET /stream HTTP/1.0\r\n\r\n");
  std::string all = raw.read_to_end();
  EXPECT_TRUE(all.ends_with("\r\n\r\nonetwo")) << all;
  EXPECT_EQ(all.find("chunked"), std::string::npos);
}

TEST(Server, HandlerThatThrowsIsAnInternalError) {
  TestServer server([](Router& router) {
    router.add("GET", "/throw", [](Request&, ResponseWriter&) -> Task<void> {
      throw std::runtime_error("secret detail");
      co_return;
    });
    router.add("GET", "/silent", [](Request&, ResponseWriter&) -> Task<void> { co_return; });
    add_basic_routes(router);
  });
  auto client = server.client();
  auto thrown = client.request("GET", "/throw");
  EXPECT_EQ(thrown->status, 500);
  EXPECT_EQ(thrown->body.find("secret"), std::string::npos);
  EXPECT_EQ(client.request("GET", "/silent")->status, 500);
  EXPECT_EQ(client.request("GET", "/hello")->status, 200);
}

TEST(Server, ResponseThatWasNotFinishedIsSeenToBeCut) {
  TestServer server([](Router& router) {
    router.add("GET", "/part", [](Request&, ResponseWriter& writer) -> Task<void> {
      co_await writer.start(200, {}, 10);
      co_await writer.write("half");
    });
  });
  auto client = server.client();
  EXPECT_FALSE(client.request("GET", "/part"));
}

TEST(Server, HeaderThatWouldSplitTheResponseIsNotSent) {
  TestServer server([](Router& router) {
    router.add("GET", "/split", [](Request&, ResponseWriter& writer) -> Task<void> {
      Response response = Response::text("x");
      response.headers.add("X-Name", "a\r\nSet-Cookie: b");
      co_await writer.send(std::move(response));
    });
  });
  auto response = server.client().request("GET", "/split");
  EXPECT_EQ(response->status, 500);
  EXPECT_FALSE(response->headers.contains("Set-Cookie"));
}

TEST(Server, KnowsWhoIsAtTheOtherEnd) {
  TestServer server([](Router& router) {
    router.add("GET", "/me", [](Request& request, ResponseWriter& writer) -> Task<void> {
      co_await writer.send(Response::text(std::to_string(request.peer.uid) + " " +
                                          std::to_string(request.peer.pid)));
    });
  });
  EXPECT_EQ(server.client().request("GET", "/me")->body,
            std::to_string(getuid()) + " " + std::to_string(getpid()));
}

TEST(Server, ListensOnTcp) {
  TestServer server([](Router& router) {
    router.add("GET", "/me", [](Request& request, ResponseWriter& writer) -> Task<void> {
      co_await writer.send(Response::text(request.peer.address));
    });
  });
  uint16_t port = 0;
  server.run([&] { port = *server.server().listen_tcp("127.0.0.1", 0); });
  auto client = *Client::create("http://127.0.0.1:" + std::to_string(port));
  EXPECT_EQ(client.request("GET", "/me")->body, "127.0.0.1");
}

// The kernel still hands out what such a client sent, but no longer says who it was.
TEST(Server, TcpClientThatResetsBeforeItIsAcceptedIsNotServed) {
  std::atomic<int> served = 0;
  TestServer server([&](Router& router) {
    router.add("POST", "/x", [&](Request&, ResponseWriter& writer) -> Task<void> {
      served++;
      co_await writer.send(Response::empty());
    });
  });
  server.run([&] {
    uint16_t port = *server.server().listen_tcp("127.0.0.1", 0);
    UniqueFd client(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(0, ::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)));
    std::string_view text = "POST /x HTTP/1.1\r\nHost: h\r\n\r\n";
    ASSERT_EQ(::send(client.get(), text.data(), text.size(), 0), ssize_t(text.size()));
    linger reset{1, 0};
    ::setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
  });
  // One that comes later is served, so the first has had its turn.
  uint16_t port = 0;
  server.run([&] { port = *server.server().listen_tcp("127.0.0.1", 0); });
  auto later = *Client::create("http://127.0.0.1:" + std::to_string(port));
  EXPECT_EQ(later.request("POST", "/x")->status, 204);
  EXPECT_EQ(served, 1);
}

TEST(Server, ConnectionFromElsewhereHasThePeerItCameWith) {
  TestServer server([](Router& router) {
    router.add("GET", "/me", [](Request& request, ResponseWriter& writer) -> Task<void> {
      bool local = request.peer.kind == Peer::Kind::Unix;
      co_await writer.send(Response::text((local ? "unix " : "tcp ") + request.peer.address));
    });
  });
  int ends[2];
  ASSERT_EQ(0, ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
  UniqueFd theirs(ends[0]);
  Peer peer;
  peer.address = "192.0.2.7";
  server.run([&] { server.server().serve(UniqueFd(ends[1]), peer); });
  testing::RawConnection raw{std::move(theirs)};
  raw.send("GET /me HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(raw.read_until("192.0.2.7").ends_with("tcp 192.0.2.7"));
}

TEST(Server, Ipv4ClientOfAListenerForBothFamiliesHasItsPlainAddress) {
  TestServer server([](Router& router) {
    router.add("GET", "/me", [](Request& request, ResponseWriter& writer) -> Task<void> {
      co_await writer.send(Response::text(request.peer.address));
    });
  });
  Result<uint16_t> port = fail(ErrorCode::Internal, "");
  server.run([&] { port = server.server().listen_tcp("::", 0); });
  if (!port) GTEST_SKIP() << "no IPv6 here: " << port.error().message();
  auto client = *Client::create("http://127.0.0.1:" + std::to_string(*port));
  auto response = client.request("GET", "/me");
  if (!response) GTEST_SKIP() << "IPv6 sockets take no IPv4 here: " << response.error().message();
  EXPECT_EQ(response->body, "127.0.0.1");
}

TEST(Server, SocketFileHasItsModeAndStaleOnesAreReplaced) {
  testing::TempDir dir;
  boost::asio::io_context context;
  std::string path = dir.file("s");
  {
    UniqueFd dead(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    ASSERT_EQ(0, ::bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)));
  }
  {
    Server server(context.get_executor(), Router());
    ASSERT_TRUE(server.listen_unix(path, 0640));
    struct stat status {};
    ASSERT_EQ(0, ::stat(path.c_str(), &status));
    EXPECT_EQ(status.st_mode & 0777, 0640u);
    auto second = Server(context.get_executor(), Router()).listen_unix(path);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code(), ErrorCode::Conflict);
  }
  EXPECT_NE(0, ::access(path.c_str(), F_OK));
}

}  // namespace
}  // namespace atl::http
