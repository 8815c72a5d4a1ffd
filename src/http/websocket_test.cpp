#include "http/websocket.h"

#include "http/client_websocket.h"
#include "http/http_test_support.h"
#include "http/websocket_frame.h"

namespace atl::http {
namespace {

using testing::TestServer;
constexpr std::chrono::milliseconds kPatience{testing::kPatienceMs};

Task<void> echo(WebSocket& socket) {
  while (true) {
    auto message = co_await socket.receive();
    if (!message) co_return;
    if (message->data == "bye")
      co_return co_await socket.close(CloseCode::GoingAway, "as you wish");
    auto sent = message->binary ? co_await socket.send_binary(message->data)
                                : co_await socket.send_text(message->data);
    if (!sent) co_return;
  }
}

void add_echo(Router& router) {
  router.add("GET", "/ws", [](Request&, ResponseWriter& writer) -> Task<void> {
    WebSocketOptions options;
    options.max_message_bytes = 200'000;
    options.choose_subprotocol = [](const std::vector<std::string>& offered) {
      return offered.empty() ? std::nullopt : std::optional(offered.back());
    };
    auto socket = co_await writer.upgrade_websocket(std::move(options));
    if (socket) co_await echo(**socket);
  });
}

TEST(WebSocket, EchoesTextAndBinaryOfEverySizeClass) {
  TestServer server(add_echo);
  auto client = server.client();
  auto socket = client.websocket("/ws");
  ASSERT_TRUE(socket) << socket.error().message();
  for (size_t size : {0, 1, 125, 126, 65'535, 65'536, 200'000}) {
    std::string text(size, 'x');
    ASSERT_TRUE(size % 2 == 0 ? socket->send_binary(text) : socket->send_text(text));
    auto message = socket->receive(kPatience);
    ASSERT_TRUE(message) << size << " " << message.error().message();
    EXPECT_EQ(message->binary, size % 2 == 0);
    EXPECT_EQ(message->data, text);
  }
}

TEST(WebSocket, SubprotocolIsChosenByTheHandler) {
  TestServer server(add_echo);
  auto client = server.client();
  EXPECT_EQ(client.websocket("/ws", {}, {"a", "b"})->subprotocol(), "b");
  EXPECT_EQ(client.websocket("/ws")->subprotocol(), "");
}

TEST(WebSocket, PingIsAnsweredAndSkipped) {
  TestServer server(add_echo);
  auto client = server.client();
  auto socket = client.websocket("/ws");
  ASSERT_TRUE(socket->ping("p"));
  ASSERT_TRUE(socket->send_text("after"));
  EXPECT_EQ(socket->receive(kPatience)->data, "after");
}

TEST(WebSocket, CloseCodesTravelBothWays) {
  TestServer server(add_echo);
  auto client = server.client();
  auto socket = client.websocket("/ws");
  ASSERT_TRUE(socket->send_text("bye"));
  auto end = socket->receive(kPatience);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code(), ErrorCode::Cancelled);
  EXPECT_EQ(socket->close_code(), 1001);
  EXPECT_EQ(socket->close_reason(), "as you wish");
}

TEST(WebSocket, ServerSeesTheClientsCloseCode) {
  std::promise<std::pair<ErrorCode, uint16_t>> seen;
  TestServer server([&](Router& router) {
    router.add("GET", "/ws", [&](Request&, ResponseWriter& writer) -> Task<void> {
      auto socket = co_await writer.upgrade_websocket(WebSocketOptions());
      auto message = co_await (*socket)->receive();
      seen.set_value(
          {message ? ErrorCode::Internal : message.error().code(), (*socket)->close_code()});
    });
  });
  auto client = server.client();
  auto socket = client.websocket("/ws");
  ASSERT_TRUE(socket->close(1000, "done"));
  auto [code, close_code] = seen.get_future().get();
  EXPECT_EQ(code, ErrorCode::Cancelled);
  EXPECT_EQ(close_code, 1000);
}

TEST(WebSocket, MessageOverTheLimitClosesAsTooBig) {
  TestServer server(add_echo);
  auto client = server.client();
  auto socket = client.websocket("/ws");
  [[maybe_unused]] auto ignored = socket->send_binary(std::string(200'001, 'x'));
  EXPECT_FALSE(socket->receive(kPatience));
  EXPECT_EQ(socket->close_code(), 1009);
}

TEST(WebSocket, OrdinaryRequestIsToldToUpgrade) {
  TestServer server(add_echo);
  auto response = server.client().request("GET", "/ws");
  EXPECT_EQ(response->status, 426);
  EXPECT_EQ(response->headers.get("Upgrade"), "websocket");
}

TEST(WebSocket, RefusedHandshakeGivesTheServersError) {
  TestServer server(add_echo);
  auto client = server.client();
  auto socket = client.websocket("/nowhere");
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().code(), ErrorCode::NotFound);
}

TEST(WebSocket, StoppingTheServerEndsIt) {
  TestServer server(add_echo);
  auto client = server.client();
  auto socket = client.websocket("/ws");
  ASSERT_TRUE(socket);
  server.stop(std::chrono::milliseconds(10));
  EXPECT_FALSE(socket->receive(kPatience));
  EXPECT_EQ(server.connection_count(), 0u);
}

TEST(WebSocket, PollingShowsWhetherAMessageIsThere) {
  TestServer server(add_echo);
  auto client = server.client();
  auto socket = client.websocket("/ws");
  auto nothing = socket->try_receive();
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(*nothing);
  ASSERT_TRUE(socket->send_text("a"));
  pollfd polled{socket->fd(), POLLIN, 0};
  ASSERT_EQ(1, ::poll(&polled, 1, testing::kPatienceMs));
  auto message = socket->try_receive();
  ASSERT_TRUE(message && *message);
  EXPECT_EQ((*message)->data, "a");
  EXPECT_FALSE(socket->pending());
}

TEST(FrameDecoder, RefusesWhatNoServerSends) {
  for (const std::string& bad :
       {std::string("\x81\x81"), std::string("\xc1\x01"), std::string("\x83\x01"),
        std::string("\x09\x01"), std::string("\x89\x7e")}) {
    FrameDecoder decoder(100);
    decoder.feed(bad);
    EXPECT_FALSE(decoder.next());
  }
}

TEST(FrameDecoder, WaitsForTheWholeFrame) {
  FrameDecoder decoder(100);
  decoder.feed("\x81");
  EXPECT_FALSE(*decoder.next());
  decoder.feed("\x02h");
  EXPECT_FALSE(*decoder.next());
  decoder.feed("i\x81");
  EXPECT_EQ((*decoder.next())->payload, "hi");
  EXPECT_FALSE(decoder.empty());
}

}  // namespace
}  // namespace atl::http
