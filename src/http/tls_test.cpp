// HTTPS between our server and our client; tls_interop_test.cpp has the clients of others.
#include <gmock/gmock.h>

#include "http/client_websocket.h"
#include "http/sse.h"
#include "http/tls_test_support.h"

namespace atl::http {
namespace {

using std::chrono::milliseconds;
using testing::add_basic_routes;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::TestAuthority;
using testing::TlsTestServer;

// Decrypted bytes to throw at a server, and what it says, without an HTTP client in between.
BlockingSocket connect_secure(const TlsTestServer& server) {
  auto authorities = *TlsClientContext::create(server.authority().ca_file());
  auto endpoint = *Endpoint::parse(server.url());
  auto socket =
      BlockingSocket::connect(endpoint, milliseconds(testing::kPatienceMs), authorities.get());
  EXPECT_TRUE(socket) << socket.error().message();
  socket->set_timeout(milliseconds(testing::kPatienceMs));
  return std::move(*socket);
}

// To the end of the stream; fails if it is cut.
Result<std::string> read_to_end(BlockingSocket& socket) {
  std::string all;
  std::vector<char> block(64 * 1024);
  while (true) {
    ATOLL_ASSIGN(size_t got, socket.read(block));
    if (got == 0) return all;
    all.append(block.data(), got);
  }
}

TEST(Tls, ServesRequestsOnOneConnection) {
  TlsTestServer server(add_basic_routes);
  auto client = server.secure_client();
  for (int i = 0; i < 3; i++) {
    auto response = client.request("GET", "/hello");
    ASSERT_TRUE(response) << response.error().message();
    EXPECT_EQ(response->body, "hello");
  }
  std::string body(300'000, 'x');
  EXPECT_EQ(client.request("POST", "/echo", {}, body)->body, body);
  EXPECT_EQ(server.connection_count(), 1u);
}

TEST(Tls, ClientIsNeverTakenForALocalOne) {
  TlsTestServer server([](Router& router) {
    router.add("GET", "/me", [](Request& request, ResponseWriter& writer) -> Task<void> {
      bool local = request.peer.kind == Peer::Kind::Unix;
      bool has_port = request.peer.port != 0;
      co_await writer.send(Response::text((local ? "unix " : "tcp ") + request.peer.address +
                                          (has_port ? " port" : " none")));
    });
  });
  EXPECT_EQ(server.secure_client().request("GET", "/me")->body, "tcp 127.0.0.1 port");
}

TEST(Tls, LargeBodiesArriveWhole) {
  constexpr size_t kTotal = 8 * 1024 * 1024;
  TlsTestServer server([](Router& router) {
    router.add("PUT", "/up", [](Request& request, ResponseWriter& writer) -> Task<void> {
      uint64_t sum = 0;
      std::string block(100'000, '\0');
      while (true) {
        auto got = co_await request.body->read(block);
        if (!got || *got == 0) break;
        for (size_t i = 0; i < *got; i++) sum = sum * 31 + static_cast<unsigned char>(block[i]);
      }
      co_await writer.send(Response::text(std::to_string(sum)));
    });
    router.add("GET", "/down", [](Request&, ResponseWriter& writer) -> Task<void> {
      std::string block(1024 * 1024, '\0');
      auto result = co_await writer.start(200, {});
      for (size_t at = 0; result && at < kTotal; at += block.size()) {
        for (size_t i = 0; i < block.size(); i++) block[i] = static_cast<char>((at + i) % 251);
        result = co_await writer.write(block);
      }
      if (result) co_await writer.finish();
    });
  });
  std::string expected(kTotal, '\0');
  uint64_t sum = 0;
  for (size_t i = 0; i < kTotal; i++) {
    expected[i] = static_cast<char>(i % 251);
    sum = sum * 31 + i % 251;
  }
  auto client = server.secure_client();
  EXPECT_EQ(client.request("PUT", "/up", {}, expected)->body, std::to_string(sum));
  auto down = client.request("GET", "/down");
  ASSERT_TRUE(down) << down.error().message();
  EXPECT_TRUE(down->body == expected);
}

TEST(Tls, WebSocketsWork) {
  TlsTestServer server([](Router& router) {
    router.add("GET", "/ws", [](Request&, ResponseWriter& writer) -> Task<void> {
      WebSocketOptions options;
      options.max_message_bytes = 4 * 1024 * 1024;
      auto socket = co_await writer.upgrade_websocket(std::move(options));
      while (socket) {
        auto message = co_await (*socket)->receive();
        if (!message) co_return;
        if (message->data == "bye") co_return co_await (*socket)->close(CloseCode::Normal, "bye");
        co_await (*socket)->send_binary(message->data);
      }
    });
  });
  auto client = server.secure_client();
  auto socket = client.websocket("/ws");
  ASSERT_TRUE(socket) << socket.error().message();
  for (size_t size : {1, 126, 16'384, 65'536, 3'000'000}) {
    std::string data(size, 'w');
    ASSERT_TRUE(socket->send_binary(data));
    auto message = socket->receive(milliseconds(testing::kPatienceMs));
    ASSERT_TRUE(message) << message.error().message();
    EXPECT_TRUE(message->data == data) << size;
  }
  ASSERT_TRUE(socket->send_text("bye"));
  EXPECT_EQ(socket->receive(milliseconds(testing::kPatienceMs)).error().code(),
            ErrorCode::Cancelled);
  EXPECT_EQ(socket->close_code(), 1000);
  while (server.connection_count() > 0) std::this_thread::yield();
}

TEST(Tls, EventsComeOneByOneAndTheServerHearsTheClientLeave) {
  std::promise<void> left;
  TlsTestServer server([&](Router& router) {
    router.add("GET", "/events", [&](Request&, ResponseWriter& writer) -> Task<void> {
      EventStream events(writer);
      co_await events.start();
      for (int i = 0; i < 3; i++) co_await events.send("n", std::to_string(i));
      co_await writer.closed();
      left.set_value();
    });
  });
  {
    auto client = server.secure_client();
    auto stream = client.open("GET", "/events");
    ASSERT_TRUE(stream);
    for (const char* expected : {"0", "1", "2"}) {
      auto event = stream->next_event();
      ASSERT_TRUE(event && *event);
      EXPECT_EQ((*event)->data, expected);
    }
  }
  left.get_future().wait();
}

TEST(Tls, OrderlyEndIsToldFromOneThatWasCut) {
  TlsTestServer server([](Router& router) {
    router.add("GET", "/whole", [](Request&, ResponseWriter& writer) -> Task<void> {
      co_await writer.start(200, {});
      co_await writer.write("all of it");
      co_await writer.finish();
    });
    router.add("GET", "/cut", [](Request&, ResponseWriter& writer) -> Task<void> {
      co_await writer.start(200, {});
      co_await writer.write("half of");
    });
  });
  auto whole = connect_secure(server);
  ASSERT_TRUE(whole.write({"GET /whole HTTP/1.0\r\n\r\n"}));
  auto text = read_to_end(whole);
  ASSERT_TRUE(text) << text.error().message();
  EXPECT_TRUE(text->ends_with("\r\n\r\nall of it"));
  auto cut = connect_secure(server);
  ASSERT_TRUE(cut.write({"GET /cut HTTP/1.0\r\n\r\n"}));
  auto broken = read_to_end(cut);
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code(), ErrorCode::Unavailable);
}

TEST(Tls, ReaderThatTakesNothingIsCutOff) {
  ServerOptions options;
  options.write_timeout = milliseconds(60);
  std::promise<ErrorCode> outcome;
  TlsTestServer server(
      [&](Router& router) {
        router.add("GET", "/flood", [&](Request&, ResponseWriter& writer) -> Task<void> {
          std::string block(1024 * 1024, 'x');
          auto result = co_await writer.start(200, {});
          while (result) result = co_await writer.write(block);
          outcome.set_value(result.error().code());
        });
      },
      options);
  auto socket = connect_secure(server);
  ASSERT_TRUE(socket.write({"GET /flood HTTP/1.1\r\nHost: h\r\n\r\n"}));
  EXPECT_EQ(outcome.get_future().get(), ErrorCode::Timeout);
}

TEST(Tls, ClientThatResetsInTheMiddleEndsOnlyItsRequest) {
  std::promise<bool> failed;
  TlsTestServer server([&](Router& router) {
    add_basic_routes(router);
    router.add("GET", "/flood", [&](Request&, ResponseWriter& writer) -> Task<void> {
      std::string block(1024 * 1024, 'x');
      auto result = co_await writer.start(200, {});
      while (result) result = co_await writer.write(block);
      failed.set_value(true);
    });
  });
  {
    auto socket = connect_secure(server);
    ASSERT_TRUE(socket.write({"GET /flood HTTP/1.1\r\nHost: h\r\n\r\n"}));
    std::vector<char> some(100'000);
    ASSERT_TRUE(socket.read(some));
    linger reset{1, 0};
    ::setsockopt(socket.fd(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
  }
  EXPECT_TRUE(failed.get_future().get());
  EXPECT_EQ(server.secure_client().request("GET", "/hello")->body, "hello");
}

TEST(Tls, StopLetsRequestsFinishAndSaysGoodbyeToTheRest) {
  std::promise<void> running;
  TlsTestServer server([&](Router& router) {
    add_basic_routes(router);
    router.add("GET", "/last", [&](Request&, ResponseWriter& writer) -> Task<void> {
      running.set_value();
      co_await writer.start(200, {});
      co_await writer.write("done");
      co_await writer.finish();
    });
  });
  auto idle = connect_secure(server);
  ASSERT_TRUE(idle.write({"GET /hello HTTP/1.1\r\nHost: h\r\n\r\n"}));
  std::vector<char> block(4096);
  ASSERT_TRUE(idle.read(block));
  auto busy = connect_secure(server);
  ASSERT_TRUE(busy.write({"GET /last HTTP/1.0\r\n\r\n"}));
  running.get_future().wait();
  auto silent = server.connect_tcp();  // never shakes hands
  while (server.connection_count() < 3) std::this_thread::yield();
  server.stop(std::chrono::seconds(20));
  EXPECT_EQ(server.connection_count(), 0u);
  EXPECT_TRUE(read_to_end(idle));
  EXPECT_TRUE(read_to_end(busy)->ends_with("done"));
  EXPECT_EQ(silent.read_to_end(), "");
}

TEST(TlsHandshake, PlainHttpIsToldSoAndClosed) {
  TlsTestServer server(add_basic_routes);
  auto raw = server.connect_tcp();
  raw.send("GET /hello HTTP/1.1\r\nHost: h\r\n\r\n");
  std::string all = raw.read_to_end();
  EXPECT_THAT(all, StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(all, HasSubstr("HTTPS"));
}

TEST(TlsHandshake, GarbageIsClosedAtOnce) {
  TlsTestServer server(add_basic_routes);
  auto raw = server.connect_tcp();
  raw.send(std::string(600, '\x81'));
  EXPECT_LT(raw.read_to_end().size(), 16u);  // an alert, at most
  while (server.connection_count() > 0) std::this_thread::yield();
}

TEST(TlsHandshake, SilenceAndTricklesEndAtTheDeadline) {
  ServerOptions options;
  options.handshake_timeout = milliseconds(80);
  TlsTestServer server(add_basic_routes, options);
  auto silent = server.connect_tcp();
  auto trickle = server.connect_tcp();
  std::string hello("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
  pollfd polled{trickle.fd(), POLLIN, 0};
  size_t sent = 0;
  while (::poll(&polled, 1, 10) == 0 && sent < 1000) {
    trickle.send(std::string_view(hello).substr(std::min(sent, hello.size() - 1), 1));
    sent++;
  }
  EXPECT_LT(sent, 300u);
  EXPECT_EQ(silent.read_to_end(), "");
}

TEST(TlsHandshake, OldestIsGivenUpWhenThereAreTooMany) {
  ServerOptions options;
  options.max_handshakes = 2;
  TlsTestServer server(add_basic_routes, options);
  auto first = server.connect_tcp();
  while (server.connection_count() < 1) std::this_thread::yield();
  auto second = server.connect_tcp();
  while (server.connection_count() < 2) std::this_thread::yield();
  EXPECT_EQ(server.secure_client().request("GET", "/hello")->body, "hello");
  EXPECT_EQ(first.read_to_end(), "");
}

struct Distrust {
  const char* name;
  TestAuthority::Leaf leaf;
  const char* host;
  const char* reason;
};

class TlsDistrust : public ::testing::TestWithParam<Distrust> {};

TEST_P(TlsDistrust, IsAnError) {
  TestAuthority authority;
  auto tls = *TlsContext::create(authority.issue("server", GetParam().leaf));
  TlsTestServer server(add_basic_routes, ServerOptions(), tls);
  ClientOptions options;
  options.ca_file = authority.ca_file();
  auto response = Client::create(server.url(GetParam().host), options)->request("GET", "/hello");
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), ErrorCode::Unauthenticated);
  EXPECT_THAT(response.error().message(), HasSubstr(GetParam().reason));
}

INSTANTIATE_TEST_SUITE_P(
    Certificates, TlsDistrust,
    ::testing::Values(
        Distrust{"OtherName", {"leaf", "DNS:other.example", 30}, "localhost", "hostname mismatch"},
        Distrust{"NameOnlyInSubject", {"localhost", "DNS:a", 30}, "localhost", "hostname mismatch"},
        Distrust{"AddressNotNamed", {"leaf", "DNS:localhost", 30}, "127.0.0.1", "IP address mism"},
        Distrust{"Expired", {"leaf", "DNS:localhost", -1}, "localhost", "expired"}),
    [](const auto& test) { return test.param.name; });

TEST(TlsTrust, AddressInTheCertificateWillDo) {
  TlsTestServer server(add_basic_routes);
  auto client = *Client::create(server.url("127.0.0.1"), server.trusting());
  EXPECT_EQ(client.request("GET", "/hello")->body, "hello");
}

TEST(TlsTrust, SystemsAuthoritiesDoNotVouchForOurs) {
  TlsTestServer server(add_basic_routes);
  unsetenv("ATOLL_CA_FILE");
  auto response = Client::create(server.url())->request("GET", "/hello");
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), ErrorCode::Unauthenticated);
}

TEST(TlsTrust, EnvironmentMayNameTheAuthority) {
  TlsTestServer server(add_basic_routes);
  setenv("ATOLL_CA_FILE", server.authority().ca_file().c_str(), 1);
  auto response = Client::create(server.url())->request("GET", "/hello");
  unsetenv("ATOLL_CA_FILE");
  ASSERT_TRUE(response) << response.error().message();
  EXPECT_EQ(response->body, "hello");
}

TEST(TlsTrust, ClientSaysWhenTheServerSpeaksNoTls) {
  testing::TestServer plain(add_basic_routes);
  uint16_t port = 0;
  plain.run([&] { port = *plain.server().listen_tcp("127.0.0.1", 0); });
  auto client = *Client::create("https://127.0.0.1:" + std::to_string(port));
  auto response = client.request("GET", "/hello");
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), ErrorCode::Unavailable);
  EXPECT_THAT(response.error().message(), HasSubstr("TLS"));
}

}  // namespace
}  // namespace atl::http
