// What one client may take from the others: connections, memory, patience.
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "http/http_test_support.h"
#include "http/server.h"

namespace atl::http {
namespace {

using std::chrono::milliseconds;
using testing::add_basic_routes;
using testing::RawConnection;
using testing::TestServer;

constexpr std::string_view kHello = "GET /hello HTTP/1.1\r\nHost: h\r\n\r\n";

std::string post(size_t announced, size_t sent) {
  return "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(announced) +
         "\r\n\r\n" + std::string(sent, 'x');
}

void say_hello(RawConnection& connection) {
  connection.send(kHello);
  EXPECT_TRUE(connection.read_until("hello").starts_with("HTTP/1.1 200"));
}

// Has the server begin to answer a request that is not complete yet.
void occupy(TestServer& server, RawConnection& connection) {
  say_hello(connection);
  connection.send(post(10, 5));
  // A second client's answer means that the server has read what came before it.
  auto other = server.connect();
  other.read_to_end();
}

TEST(ServerLimits, AConnectionThatWaitsMakesRoomForANewOne) {
  ServerOptions options;
  options.max_connections = 2;
  TestServer server(add_basic_routes, options);
  auto first = server.connect();
  say_hello(first);
  auto second = server.connect();
  say_hello(second);
  auto third = server.connect();
  say_hello(third);
  EXPECT_EQ(first.read_to_end(), "") << "the one that waited longest is closed without a word";
  say_hello(third);
}

TEST(ServerLimits, AHalfHeadIsWaitingToo) {
  ServerOptions options;
  options.max_connections = 1;
  TestServer server(add_basic_routes, options);
  auto slow = server.connect();
  slow.send("GET /hello HTT");
  auto second = server.connect();
  say_hello(second);
  EXPECT_EQ(slow.read_to_end(), "");
}

TEST(ServerLimits, WhereAllAreBeingAnsweredANewcomerIsTurnedAway) {
  ServerOptions options;
  options.max_connections = 1;
  TestServer server(add_basic_routes, options);
  auto first = server.connect();
  occupy(server, first);
  auto second = server.connect();
  EXPECT_TRUE(second.read_to_end().starts_with("HTTP/1.1 503"));
  first.send("yyyyy");
  EXPECT_TRUE(first.read_until("xyyyyy").starts_with("HTTP/1.1 200"));
}

TEST(ServerLimits, LargeBodiesTogetherAreRefusedAndSmallOnesAreNot) {
  ServerOptions options;
  options.max_buffered_bytes = 200 * 1024;
  TestServer server(add_basic_routes, options);
  auto large = server.connect();
  large.send(post(200 * 1024, 150 * 1024));
  auto other = server.connect();
  say_hello(other);  // by now the server knows of the large one
  auto second = server.connect();
  second.send(post(200 * 1024, 200 * 1024));
  EXPECT_TRUE(second.read_until("}").starts_with("HTTP/1.1 429"));
  auto small = server.connect();
  small.send(post(1000, 1000));
  EXPECT_TRUE(small.read_until("xxxx").starts_with("HTTP/1.1 200"));
  large.send(std::string(50 * 1024, 'y'));
  EXPECT_TRUE(large.read_until("y").starts_with("HTTP/1.1 200"));
  auto third = server.connect();
  third.send(post(200 * 1024, 200 * 1024));
  EXPECT_TRUE(third.read_until("xxxx").starts_with("HTTP/1.1 200")) << "what was taken is back";
}

// Sends a byte now and then until the server has an answer; returns how many went out.
int trickle(RawConnection& raw, int limit) {
  pollfd polled{raw.fd(), POLLIN, 0};
  int bytes = 0;
  for (; bytes < limit && ::poll(&polled, 1, 10) == 0; bytes++) raw.send("x");
  return bytes;
}

TEST(ServerLimits, ABodyThatTricklesEndsWith408) {
  ServerOptions options;
  options.pace_window = milliseconds(100);
  options.pace_bytes = 1000;
  TestServer server(add_basic_routes, options);
  auto raw = server.connect();
  raw.send(post(1000, 1));
  EXPECT_LT(trickle(raw, 998), 998);
  EXPECT_TRUE(raw.read_to_end().starts_with("HTTP/1.1 408"));
  // The same without a least pace: only silence would be too slow.
  options.pace_bytes = 0;
  TestServer patient(add_basic_routes, options);
  auto slow = patient.connect();
  slow.send(post(100, 1));
  EXPECT_EQ(trickle(slow, 99), 99);
  EXPECT_TRUE(slow.read_until("xxxx").starts_with("HTTP/1.1 200"));
}

TEST(ServerLimits, TricklingChunksEndWith408) {
  ServerOptions options;
  options.pace_window = milliseconds(100);
  options.pace_bytes = 1000;
  TestServer server(add_basic_routes, options);
  auto raw = server.connect();
  raw.send("POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
  pollfd polled{raw.fd(), POLLIN, 0};
  int chunks = 0;
  for (; chunks < 1000 && ::poll(&polled, 1, 10) == 0; chunks++) raw.send("1\r\nx\r\n");
  EXPECT_LT(chunks, 100);
  EXPECT_TRUE(raw.read_to_end().starts_with("HTTP/1.1 408"));
}

TEST(ServerLimits, AHandlerThatTakesItsTimeIsNotTheSendersFault) {
  ServerOptions options;
  options.pace_window = milliseconds(50);
  options.pace_bytes = 64 * 1024;
  auto routes = [](Router& router) {
    router.add("POST", "/slow", [](Request& request, ResponseWriter& writer) -> Task<void> {
      char byte = 0;
      size_t total = 0;
      boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor);
      for (size_t got = 1; got > 0;) {
        timer.expires_after(milliseconds(20));
        co_await timer.async_wait(boost::asio::use_awaitable);
        auto read = co_await request.body->read({&byte, 1});
        got = read ? *read : 0;
        total += got;
      }
      co_await writer.send(Response::text(std::to_string(total) + " bytes"));
    });
  };
  TestServer server(routes, options);
  auto raw = server.connect();
  raw.send("POST /slow HTTP/1.1\r\nHost: h\r\nContent-Length: 20\r\n\r\n" + std::string(20, 'x'));
  EXPECT_TRUE(raw.read_until("20 bytes").starts_with("HTTP/1.1 200"));
}

TEST(ServerLimits, TheRestOfABodyIsNotAwaitedForEver) {
  ServerOptions options;
  options.drain_timeout = milliseconds(100);
  TestServer server(add_basic_routes, options);
  auto raw = server.connect();
  raw.send("GET /hello HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n");
  raw.read_until("hello");
  pollfd polled{raw.fd(), POLLIN, 0};
  int bytes = 0;
  while (::poll(&polled, 1, 10) == 0 && bytes++ < 900) raw.send("x");
  EXPECT_LT(bytes, 300);
  EXPECT_EQ(raw.read_to_end(), "");
}

}  // namespace
}  // namespace atl::http
