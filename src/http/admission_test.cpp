#include "http/admission.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <optional>
#include <vector>

#include "http/http_test_support.h"

namespace atl::http {
namespace {

Peer tcp_peer(std::string address) {
  Peer peer;
  peer.address = std::move(address);
  return peer;
}

TEST(Admission, EachAddressHasItsShareAndGetsItBack) {
  Admission admission(100, 2);
  auto first = admission.admit(tcp_peer("192.0.2.1"));
  auto second = std::optional(admission.admit(tcp_peer("192.0.2.1")));
  auto third = admission.admit(tcp_peer("192.0.2.1"));
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code(), ErrorCode::ResourceExhausted);
  EXPECT_TRUE(admission.admit(tcp_peer("192.0.2.2")));
  second.reset();
  EXPECT_TRUE(admission.admit(tcp_peer("192.0.2.1")));
}

TEST(Admission, LocalClientsAreBoundedOnlyTogether) {
  Admission admission(3, 1);
  Peer local;
  local.kind = Peer::Kind::Unix;
  auto a = admission.admit(local);
  auto b = admission.admit(tcp_peer("127.0.0.1"));
  auto c = admission.admit(tcp_peer("::1"));
  EXPECT_TRUE(a && b && c);
  auto over = admission.admit(local);
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code(), ErrorCode::Unavailable);
}

TEST(Admission, SomeAreKeptForTheServersOwnSocket) {
  Admission admission(32, 1);
  std::vector<Result<Admission::Ticket>> tickets;
  for (int i = 0; i < 30; i++) tickets.push_back(admission.admit(tcp_peer("127.0.0.1")));
  EXPECT_TRUE(tickets.back());
  EXPECT_FALSE(admission.admit(tcp_peer("127.0.0.1")));
  Peer local;
  local.kind = Peer::Kind::Unix;
  EXPECT_TRUE(admission.admit(local));
}

TEST(Admission, ShareOfZeroLetsNobodyIn) {
  EXPECT_FALSE(Admission(10, 0).admit(tcp_peer("192.0.2.1")));
}

TEST(Admission, AnIpv6NetworkCountsAsOneClient) {
  EXPECT_EQ(counted_address(tcp_peer("2001:db8:1:2:3::4")), "2001:db8:1:2::");
  EXPECT_EQ(counted_address(tcp_peer("2001:db8:1:2:ffff::")), "2001:db8:1:2::");
  EXPECT_NE(counted_address(tcp_peer("2001:db8:1:3::")), "2001:db8:1:2::");
  EXPECT_EQ(counted_address(tcp_peer("192.0.2.9")), "192.0.2.9");
}

TEST(Admission, LeavesDescriptorsForOtherThings) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_LT(Admission(limit.rlim_cur * 2, 1).max_connections(), limit.rlim_cur);
  EXPECT_EQ(Admission(10, 1).max_connections(), 10u);
}

TEST(Admission, ServerTurnsAwayWhoHasTooMany) {
  ServerOptions options;
  options.max_connections_per_address = 2;
  testing::TestServer server(testing::add_basic_routes, options);
  auto connect_from = [&](const char* address) {
    int ends[2];
    EXPECT_EQ(0, ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    server.run([&] { server.server().serve(UniqueFd(ends[1]), tcp_peer(address)); });
    return testing::RawConnection(UniqueFd(ends[0]));
  };
  auto hello = [](testing::RawConnection& raw) {
    raw.send("GET /hello HTTP/1.1\r\nHost: h\r\n\r\n");
    return raw.read_until("hello");
  };
  auto first = connect_from("192.0.2.1");
  auto second = connect_from("192.0.2.1");
  EXPECT_TRUE(connect_from("192.0.2.1").read_to_end().starts_with("HTTP/1.1 429"));
  auto other = connect_from("192.0.2.2");
  EXPECT_TRUE(hello(first).starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(hello(other).starts_with("HTTP/1.1 200"));
  second.close();
  while (server.connection_count() > 2) std::this_thread::yield();
  auto third = connect_from("192.0.2.1");
  EXPECT_TRUE(hello(third).starts_with("HTTP/1.1 200"));
}

}  // namespace
}  // namespace atl::http
