// Deadlines, clients that go away, and stopping.
#include <gmock/gmock.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "http/http_test_support.h"
#include "http/server.h"

namespace atl::http {
namespace {

using std::chrono::milliseconds;
using testing::add_basic_routes;
using testing::TestServer;

ServerOptions with_timeout(std::chrono::milliseconds ServerOptions::*which, int limit_ms) {
  ServerOptions options;
  options.*which = milliseconds(limit_ms);
  return options;
}

// Writes until that fails.
Task<Error> flood(ResponseWriter& writer) {
  std::string block(1024 * 1024, 'x');
  auto result = co_await writer.start(200, {});
  while (result) result = co_await writer.write(block);
  co_return result.error();
}

// "GET /wait", which is answered when the test says so.
class HeldRequest {
 public:
  void add_to(Router& router) {
    router.add("GET", "/wait", [this](Request&, ResponseWriter& writer) -> Task<void> {
      writer.on_closed([this] { client_left_ = true; });
      running_.set_value();
      boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor);
      while (!released_) {
        timer.expires_after(milliseconds(1));
        co_await timer.async_wait(boost::asio::use_awaitable);
      }
      co_await writer.send(Response::text("waited"));
    });
  }
  void await_start() { running_.get_future().wait(); }
  void release() { released_ = true; }
  bool client_left() const { return client_left_; }

 private:
  std::promise<void> running_;
  std::atomic<bool> released_ = false;
  std::atomic<bool> client_left_ = false;
};

TEST(ServerDeadline, SlowHeadIsAnsweredAndClosed) {
  TestServer server(add_basic_routes, with_timeout(&ServerOptions::head_timeout, 60));
  auto raw = server.connect();
  raw.send("GET /hello HTT");
  EXPECT_TRUE(raw.read_to_end().starts_with("HTTP/1.1 408"));
}

TEST(ServerDeadline, TrickledHeadGetsNoMoreTimeForEachByte) {
  TestServer server(add_basic_routes, with_timeout(&ServerOptions::head_timeout, 100));
  auto raw = server.connect();
  pollfd polled{raw.fd(), POLLIN, 0};
  int bytes = 0;
  while (::poll(&polled, 1, 10) == 0 && bytes++ < 1000) raw.send("G");
  EXPECT_LT(bytes, 200);
  EXPECT_TRUE(raw.read_to_end().starts_with("HTTP/1.1 408"));
}

TEST(ServerDeadline, IdleConnectionsAreClosedWithoutAWord) {
  TestServer server(add_basic_routes, with_timeout(&ServerOptions::idle_timeout, 60));
  auto raw = server.connect();
  raw.send("GET /hello HTTP/1.1\r\nHost: h\r\n\r\n");
  raw.read_until("hello");
  EXPECT_EQ(raw.read_to_end(), "");
}

TEST(ServerDeadline, SilenceWithinABodyFailsTheRead) {
  TestServer server(add_basic_routes, with_timeout(&ServerOptions::body_timeout, 60));
  auto raw = server.connect();
  raw.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhalf");
  EXPECT_EQ(raw.read_to_end().find("200 OK"), std::string::npos);
}

TEST(ServerDeadline, ReaderThatTakesNothingIsCutOff) {
  std::promise<ErrorCode> outcome;
  TestServer server(
      [&](Router& router) {
        router.add("GET", "/flood", [&](Request&, ResponseWriter& writer) -> Task<void> {
          outcome.set_value((co_await flood(writer)).code());
        });
      },
      with_timeout(&ServerOptions::write_timeout, 60));
  auto raw = server.connect();
  raw.send("GET /flood HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(outcome.get_future().get(), ErrorCode::Timeout);
}

TEST(ServerDeadline, SlowReaderAlsoCountsAsGone) {
  std::promise<void> left;
  TestServer server(
      [&](Router& router) {
        router.add("GET", "/flood", [&](Request&, ResponseWriter& writer) -> Task<void> {
          writer.on_closed([&] { left.set_value(); });
          (void)co_await flood(writer);
        });
      },
      with_timeout(&ServerOptions::write_timeout, 60));
  auto raw = server.connect();
  raw.send("GET /flood HTTP/1.1\r\nHost: h\r\n\r\n");
  left.get_future().wait();
}

TEST(ServerDisconnect, HandlerHearsThatTheClientLeft) {
  std::promise<void> running;
  std::promise<bool> left;
  TestServer server([&](Router& router) {
    router.add("GET", "/wait", [&](Request&, ResponseWriter& writer) -> Task<void> {
      running.set_value();
      co_await writer.closed();
      left.set_value(writer.peer_closed());
    });
  });
  auto raw = server.connect();
  raw.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n");
  running.get_future().wait();
  raw.close();
  EXPECT_TRUE(left.get_future().get());
}

TEST(ServerDisconnect, CallbackRunsOnceTheBodyIsRead) {
  std::promise<void> left;
  std::promise<void> running;
  TestServer server([&](Router& router) {
    router.add("POST", "/wait", [&](Request& request, ResponseWriter& writer) -> Task<void> {
      boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor,
                                      std::chrono::hours(1));
      writer.on_closed([&] {
        timer.cancel();
        left.set_value();
      });
      co_await request.body->read_all(100);
      running.set_value();
      try {
        co_await timer.async_wait(boost::asio::use_awaitable);
      } catch (const boost::system::system_error&) {
        // Cancelled by the callback, which is the point.
      }
    });
  });
  auto raw = server.connect();
  raw.send("POST /wait HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody");
  running.get_future().wait();
  raw.close();
  left.get_future().wait();
}

// The wait for a chunk's size reads into the connection's buffer, which long answers give back.
TEST(ServerDisconnect, ABodyIsReadBesideTheAnswer) {
  std::promise<void> reading;
  TestServer server([&](Router& router) {
    router.add("POST", "/both", [&](Request& request, ResponseWriter& writer) -> Task<void> {
      auto executor = co_await boost::asio::this_coro::executor;
      boost::asio::steady_timer read_all(executor, std::chrono::hours(1));
      std::string body;
      auto read = [&]() -> Task<void> {
        if (auto all = co_await request.body->read_all(100)) body = *all;
        read_all.cancel();
      };
      boost::asio::co_spawn(executor, read, boost::asio::detached);
      co_await boost::asio::post(executor, boost::asio::use_awaitable);  // it waits for a size
      writer.on_closed([] {});
      (void)co_await writer.start(200, {});
      reading.set_value();
      co_await read_all.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
      (void)co_await writer.write(body);
      (void)co_await writer.finish();
    });
  });
  auto raw = server.connect();
  raw.send(
      "POST /both HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n");
  reading.get_future().wait();
  raw.send("4\r\nbody\r\n0\r\n\r\n");
  EXPECT_THAT(raw.read_to_end(), ::testing::HasSubstr("body"));
}

TEST(ServerDisconnect, PipelinedBytesAreNotTakenForALeavingClient) {
  HeldRequest held;
  TestServer server([&](Router& router) {
    held.add_to(router);
    add_basic_routes(router);
  });
  auto raw = server.connect();
  raw.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n");
  held.await_start();
  raw.send("GET /hello HTTP/1.1\r\nHost: h\r\n\r\n");
  server.run([] {});
  held.release();
  raw.read_until("waited");
  EXPECT_TRUE(raw.read_until("hello").starts_with("HTTP/1.1 200"));
  EXPECT_FALSE(held.client_left());
}

TEST(ServerDisconnect, BodyReadFailsWhenTheClientLeavesHalfWay) {
  std::promise<ErrorCode> outcome;
  TestServer server([&](Router& router) {
    router.add("POST", "/in", [&](Request& request, ResponseWriter&) -> Task<void> {
      auto body = co_await request.body->read_all(100);
      outcome.set_value(body ? ErrorCode::Internal : body.error().code());
    });
  });
  auto raw = server.connect();
  raw.send("POST /in HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhalf");
  raw.close();
  EXPECT_EQ(outcome.get_future().get(), ErrorCode::Unavailable);
}

// A client may send its next requests early, but not have the server keep any number of them.
TEST(ServerDisconnect, FloodBehindALongRequestIsLeftToTheKernel) {
  std::promise<void> running;
  std::promise<void> left;
  TestServer server([&](Router& router) {
    router.add("GET", "/wait", [&](Request&, ResponseWriter& writer) -> Task<void> {
      running.set_value();
      co_await writer.closed();
      left.set_value();
    });
  });
  auto raw = server.connect();
  raw.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n");
  running.get_future().wait();
  std::string request =
      "GET /wait HTTP/1.1\r\nHost: h\r\nX: " + std::string(4000, 'x') + "\r\n\r\n";
  size_t taken = 0;
  pollfd polled{raw.fd(), POLLOUT, 0};
  while (::poll(&polled, 1, 100) > 0 && taken < 64 * 1024 * 1024) {
    ssize_t sent = ::send(raw.fd(), request.data(), request.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) taken += static_cast<size_t>(sent);
  }
  EXPECT_LT(taken, 2u * 1024 * 1024);
  server.stop(milliseconds(0));
  left.get_future().wait();
}

TEST(ServerDeadline, TrickleOfPipelinedHeadsStillHasADeadlineEach) {
  ServerOptions options;
  options.head_timeout = milliseconds(100);
  TestServer server(add_basic_routes, options);
  auto raw = server.connect();
  raw.send("GET /hello HTTP/1.1\r\nHost: h\r\n\r\nGET /hello HTT");
  EXPECT_TRUE(raw.read_until("hello").starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(raw.read_to_end().starts_with("HTTP/1.1 408"));
}

TEST(ServerStop, LetsRunningRequestsFinishAndClosesIdleOnes) {
  HeldRequest held;
  TestServer server([&](Router& router) {
    held.add_to(router);
    add_basic_routes(router);
  });
  auto idle = server.connect();
  idle.send("GET /hello HTTP/1.1\r\nHost: h\r\n\r\n");
  idle.read_until("hello");
  auto busy = server.connect();
  busy.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n");
  held.await_start();
  std::thread stopper([&] { server.stop(std::chrono::seconds(30)); });
  EXPECT_EQ(idle.read_to_end(), "");
  held.release();
  EXPECT_TRUE(busy.read_to_end().ends_with("waited"));
  stopper.join();
  EXPECT_EQ(server.connection_count(), 0u);
}

TEST(ServerStop, ContextMayGoWhileRequestsAreRunning) {
  testing::TempDir dir;
  auto context = std::make_unique<boost::asio::io_context>(1);
  bool running = false;
  Router router;
  router.add("GET", "/wait", [&](Request&, ResponseWriter& writer) -> Task<void> {
    running = true;
    co_await writer.closed();
  });
  auto server = std::make_unique<Server>(context->get_executor(), std::move(router));
  ASSERT_TRUE(server->listen_unix(dir.file("s")));
  testing::RawConnection raw(dir.file("s"));
  raw.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n");
  while (!running) context->run_one();
  server.reset();
  context.reset();
  EXPECT_EQ(raw.read_to_end(), "");
}

TEST(ServerStop, CutsRequestsThatOutstayTheGrace) {
  std::promise<void> running;
  TestServer server([&](Router& router) {
    router.add("GET", "/hang", [&](Request&, ResponseWriter&) -> Task<void> {
      running.set_value();
      boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor,
                                      std::chrono::hours(1));
      co_await timer.async_wait(boost::asio::use_awaitable);
    });
  });
  auto raw = server.connect();
  raw.send("GET /hang HTTP/1.1\r\nHost: h\r\n\r\n");
  running.get_future().wait();
  server.stop(milliseconds(20));
  EXPECT_EQ(server.connection_count(), 0u);
  EXPECT_EQ(raw.read_to_end(), "");
}

}  // namespace
}  // namespace atl::http
