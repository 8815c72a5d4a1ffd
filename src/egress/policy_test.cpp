#include "egress/policy.h"

#include <gtest/gtest.h>

#include "egress/name.h"
#include "egress/policy_json.h"

namespace atl::egress {
namespace {

std::unique_ptr<Policy> make(std::string_view text, SecretValues secrets = {}) {
  auto parsed = parse_policy(text);
  EXPECT_TRUE(parsed) << text << ": " << (parsed ? "" : parsed.error().message());
  return std::make_unique<Policy>(parsed ? *parsed : NetworkPolicy{}, std::move(secrets));
}

TEST(Policy, ReadsAndWritesTheSameValue) {
  for (std::string_view text :
       {R"("allow-all")", R"("deny-all")", R"({"allow":{"example.org":[]}})",
        R"({"allow":{"*.example.org":[],"*":[],"db.test:5432":[]}})",
        R"({"allow":{"a.test":{"rules":[],"ports":[80,443],"limits":{"connections":3}}}})",
        R"({"allow":{},"subnets":{"allow":["192.0.2.0/24"],"deny":["10.0.0.0/8"]}})",
        R"({"allow":{"a.test":[{"match":{"path":{"startsWith":"/v1"},"method":["GET"],)"
        R"("headers":[{"key":{"exact":"X-Y"},"value":{"regex":"^a+$"}}]},)"
        R"("transform":[{"headers":{"Authorization":"Bearer ${KEY}","X-Gone":null}}]},)"
        R"({"forwardURL":"https://proxy.test/x"},)"
        R"({"response":{"statusCode":403,"headers":{},"body":"no"}}]}})"}) {
    auto parsed = parse_policy(text);
    ASSERT_TRUE(parsed) << text << parsed.error().message();
    EXPECT_EQ(write_policy(*parsed), text);
    auto again = parse_policy(write_policy(*parsed));
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, *parsed);
  }
}

TEST(Policy, RefusesWhatItDoesNotUnderstandAndNamesTheField) {
  struct Case {
    std::string_view text;
    std::string_view field;
  };
  for (
      const Case& bad : {
          Case{R"("open")", "network"},
          Case{"3", "network"},
          Case{R"({"alow":[]})", "network.alow"},
          Case{R"({"allow":["a b"]})", "network.allow[0]"},
          Case{R"({"allow":["1.2.3.4"]})", "network.allow[0]"},
          Case{R"({"allow":["a.test:0"]})", "network.allow[0]"},
          Case{R"({"allow":{"a.test":[{}]}})", "network.allow.a.test[0]"},
          Case{R"({"allow":{"a.test":[{"forwardURL":"http://x.test"}]}})",
               "network.allow.a.test[0].forwardURL"},
          Case{R"({"allow":{"a.test":[{"transform":[{"headers":{"Host":"x"}}]}]}})",
               "network.allow.a.test[0].transform[0].headers.Host"},
          Case{R"({"allow":{"a.test":[{"transform":[{"headers":{"X":"a\r\nY: b"}}]}]}})",
               "network.allow.a.test[0].transform[0].headers.X"},
          Case{
              R"({"allow":{"a.test":[{"match":{"path":{"regex":"("}},"response":{"statusCode":200}}]}})",
              "network.allow.a.test[0].match.path.regex"},
          Case{R"({"subnets":{"deny":["10.0.0.1/8"]}})", "subnets.deny[0]"},
      }) {
    auto parsed = parse_policy(bad.text);
    ASSERT_FALSE(parsed) << bad.text;
    EXPECT_EQ(parsed.error().field(), bad.field) << bad.text;
  }
}

TEST(Policy, MostSpecificDomainWins) {
  auto rules = make(R"({"allow":{"*":[],"*.b.test":[],"*.a.b.test":[],"x.a.b.test":[]}})");
  EXPECT_EQ(rules->judge("x.a.b.test", 443, Protocol::Tls).rule, "x.a.b.test");
  EXPECT_EQ(rules->judge("y.a.b.test", 443, Protocol::Tls).rule, "*.a.b.test");
  EXPECT_EQ(rules->judge("a.b.test", 443, Protocol::Tls).rule, "*.b.test");
  EXPECT_EQ(rules->judge("b.test", 443, Protocol::Tls).rule, "*");
  auto narrow = make(R"({"allow":["*.b.test"]})");
  EXPECT_FALSE(narrow->judge("b.test", 443, Protocol::Tls).allowed);
  EXPECT_FALSE(narrow->judge("evilb.test", 443, Protocol::Tls).allowed);
  EXPECT_FALSE(narrow->judge("b.test.evil", 443, Protocol::Tls).allowed);
}

TEST(Policy, OpaqueTrafficNeedsAPort) {
  auto rules = make(R"({"allow":["a.test","db.test:5432"]})");
  EXPECT_TRUE(rules->judge("a.test", 8443, Protocol::Tls).allowed);
  EXPECT_FALSE(rules->judge("a.test", 22, Protocol::Opaque).allowed);
  EXPECT_TRUE(rules->judge("db.test", 5432, Protocol::Opaque).allowed);
  EXPECT_FALSE(rules->judge("db.test", 5433, Protocol::Opaque).allowed);
  EXPECT_FALSE(rules->judge("db.test", 443, Protocol::Tls).allowed);
  EXPECT_TRUE(rules->judge("db.test", 0, Protocol::Dns).allowed);
}

TEST(Policy, DenyWinsOverEveryPermission) {
  auto rules = make(R"({"subnets":{"allow":["0.0.0.0/0"],"deny":["198.51.0.0/16"]}})");
  EXPECT_TRUE(rules->judge(*IpAddress::parse("93.184.216.34"), 22).allowed);
  auto denied = rules->judge(*IpAddress::parse("198.51.3.4"), 22);
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.rule, "subnets.deny 198.51.0.0/16");
}

RequestPlan plan_of(const Policy& rules, std::string_view method, std::string_view path,
                    bool encrypted = true, http::Headers headers = {}) {
  http::Query query;
  return rules.plan(rules.judge("a.test", 443, Protocol::Tls).permit,
                    {.method = method, .path = path, .query = query, .headers = headers},
                    encrypted);
}

TEST(Policy, TransformsOnlyMatchingRequestsAndOnlyOverTls) {
  auto rules = make(
      R"({"allow":{"a.test":[{"match":{"path":{"startsWith":"/v1/"},"method":["get"]},
      "transform":[{"headers":{"Authorization":"Bearer ${KEY}"}}]}]}})",
      {{"KEY", "s3cret"}});
  auto plan = plan_of(*rules, "GET", "/v1/models");
  ASSERT_EQ(plan.headers.size(), 1u);
  EXPECT_EQ(plan.headers[0].second, "Bearer s3cret");
  EXPECT_TRUE(plan_of(*rules, "POST", "/v1/models").headers.empty());
  EXPECT_TRUE(plan_of(*rules, "GET", "/v2/models").headers.empty());
  auto plain = plan_of(*rules, "GET", "/v1/models", false);
  EXPECT_TRUE(plain.headers.empty());
  EXPECT_TRUE(plain.withheld);
}

TEST(Policy, MatchesHeadersWithoutRegardToCase) {
  auto rules = make(
      R"({"allow":{"a.test":[{"match":{"headers":[{"key":{"exact":"X-Team"},"value":{"regex":"^r"}}]},
      "response":{"statusCode":418}}]}})");
  EXPECT_NE(plan_of(*rules, "GET", "/", true, {{"x-TEAM", "red"}}).response, nullptr);
  EXPECT_EQ(plan_of(*rules, "GET", "/", true, {{"x-team", "blue"}}).response, nullptr);
}

TEST(Policy, ASecretThatIsMissingStopsTheRequest) {
  auto rules =
      make(R"({"allow":{"a.test":[{"transform":[{"headers":{"X":"${A}"}}]}]}})", {{"B", "x"}});
  EXPECT_EQ(plan_of(*rules, "GET", "/").missing_secret, "A");
  EXPECT_EQ(secret_names(rules->value()), std::vector<std::string>{"A"});
}

TEST(Policy, ShowsReferencesButNoValues) {
  auto parsed = parse_policy(
      R"({"allow":{"a.test":[{"transform":[{"headers":{"A":"literal","B":"x ${KEY}"}}]}]}})");
  ASSERT_TRUE(parsed);
  std::string shown = write_policy(*parsed, Values::Redacted);
  EXPECT_EQ(shown.find("literal"), shown.npos);
  EXPECT_NE(shown.find("${KEY}"), shown.npos);
}

TEST(Policy, InjectionsAsOneLine) {
  auto permit = parse_injection("api.test: Authorization: Bearer ${KEY}");
  ASSERT_TRUE(permit);
  EXPECT_EQ(permit->domain, "api.test");
  EXPECT_EQ(permit->rules[0].transforms[0].headers.at("Authorization"), "Bearer ${KEY}");
  EXPECT_FALSE(parse_injection("api.test Authorization"));
}

TEST(Names, HaveOneForm) {
  EXPECT_EQ(canonical_name("API.Example.ORG."), "api.example.org");
  for (std::string_view bad : {"", ".", "a..b", "a b", "a@b", "a/b", "127.0.0.1", "1.2.3", "0x7f.1",
                               "a:80", "b\303\274cher.test", "[::1]", "2130706433"}) {
    EXPECT_FALSE(canonical_name(bad)) << bad;
  }
}

TEST(Addresses, GuardRefusesWhatIsNotPublic) {
  AddressGuard guard;
  for (const char* text :
       {"127.0.0.1", "10.1.2.3", "169.254.169.254", "168.63.129.16", "100.100.100.200",
        "192.0.0.192", "0.0.0.0", "255.255.255.255", "::1", "fd00:ec2::254", "fe80::1",
        "64:ff9b::7f00:1", "2002:7f00:1::", "::7f00:1", "::ffff:10.0.0.1"}) {
    EXPECT_TRUE(guard.refuses(*IpAddress::parse(text))) << text;
  }
  for (const char* text : {"1.1.1.1", "93.184.216.34", "2606:4700:4700::1111"}) {
    EXPECT_FALSE(guard.refuses(*IpAddress::parse(text))) << text;
  }
  auto opened = AddressGuard::parse("10.9.0.0/16, fd00::/8");
  ASSERT_TRUE(opened);
  EXPECT_FALSE(opened->refuses(*IpAddress::parse("10.9.1.1")));
  EXPECT_TRUE(opened->refuses(*IpAddress::parse("10.8.1.1")));
  guard.set_own_addresses({*IpAddress::parse("93.184.216.34")});
  EXPECT_TRUE(guard.refuses(*IpAddress::parse("93.184.216.34")));
}

}  // namespace
}  // namespace atl::egress
