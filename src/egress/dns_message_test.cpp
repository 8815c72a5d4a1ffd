#include "egress/dns_message.h"

#include <gtest/gtest.h>

#include <array>

namespace atl::egress {
namespace {

TEST(DnsMessage, AnswersWhatWasAsked) {
  std::string query = make_dns_query(7, "a.test", DnsType::A);
  auto parsed = parse_dns_query(query);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->name, "a.test");
  EXPECT_EQ(parsed->type, 1);
  std::array<char, 600> out;
  std::vector<IpAddress> two = {*IpAddress::parse("1.2.3.4"), *IpAddress::parse("5.6.7.8")};
  size_t size = write_dns_answer(query, *parsed, DnsCode::NoError, two, 60, out);
  auto reply = parse_dns_reply({out.data(), size}, 7, "a.test", DnsType::A);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->addresses, two);
  EXPECT_EQ(reply->ttl, 60u);
}

TEST(DnsMessage, IgnoresAnswersToOtherQuestions) {
  std::string query = make_dns_query(7, "a.test", DnsType::A);
  auto parsed = parse_dns_query(query);
  std::array<char, 600> out;
  std::vector<IpAddress> one = {*IpAddress::parse("1.2.3.4")};
  std::string_view reply(out.data(),
                         write_dns_answer(query, *parsed, DnsCode::NoError, one, 60, out));
  EXPECT_FALSE(parse_dns_reply(reply, 8, "a.test", DnsType::A));
  EXPECT_FALSE(parse_dns_reply(reply, 7, "b.test", DnsType::A));
  EXPECT_FALSE(parse_dns_reply(reply, 7, "a.test", DnsType::Aaaa));
  EXPECT_FALSE(parse_dns_reply(query, 7, "a.test", DnsType::A));
}

TEST(DnsMessage, TakesOnlyAddressesAtTheEndOfTheAliases) {
  std::string reply = make_dns_query(7, "a.test", DnsType::A);
  reply[2] = static_cast<char>(0x81);
  reply[7] = 3;
  auto record = [&](std::string owner, char type, const std::string& data) {
    reply += owner + std::string("\0", 1) + type + std::string("\0\1\0\0\0\5\0", 7) +
             static_cast<char>(data.size()) + data;
  };
  std::string b("\1b\4test\0", 8);
  record("\xc0\x0c", 5, b);
  record(b, 1, "\1\2\3\4");
  record(std::string("\1c\4test\0", 8), 1, "\x09\x09\x09\x09");
  auto parsed = parse_dns_reply(reply, 7, "a.test", DnsType::A);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->addresses, std::vector<IpAddress>{*IpAddress::parse("1.2.3.4")});
}

TEST(DnsMessage, RefusesLoopsAndLies) {
  std::string query = make_dns_query(7, "a.test", DnsType::A);
  for (size_t size = 0; size < query.size(); size++) {
    EXPECT_FALSE(parse_dns_query(std::string_view(query).substr(0, size)));
  }
  std::string loop = query.substr(0, 12) + std::string("\xc0\x0c\0\1\0\1", 6);
  EXPECT_FALSE(parse_dns_query(loop));
  std::string dotted = query.substr(0, 12) + std::string("\3a.b\4test\0\0\1\0\1", 14);
  EXPECT_FALSE(parse_dns_query(dotted));
}

}  // namespace
}  // namespace atl::egress
