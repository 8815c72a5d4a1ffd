#include "api/e2b/network_body.h"

#include <gtest/gtest.h>

#include <boost/json/object.hpp>

namespace atl::api::e2b {
namespace {

Result<NetworkPolicy> policy_of(std::string_view text) {
  auto document = http::JsonDocument::parse(text);
  http::JsonObjectReader reader(**document->object());
  auto wish = read_network(reader);
  if (!wish) return fail(std::move(wish).error());
  return wish->policy;
}

TEST(E2bNetwork, IsPublicWhereNobodySaysOtherwise) {
  EXPECT_EQ(policy_of("{}")->mode, NetworkPolicy::Mode::AllowAll);
  EXPECT_EQ(policy_of(R"({"allow_internet_access":false})")->mode, NetworkPolicy::Mode::DenyAll);
}

TEST(E2bNetwork, AllowsWhatIsNamed) {
  auto policy = policy_of(
      R"({"network":{"denyOut":["0.0.0.0/0"],"allowOut":["*.example.org","192.0.2.1"]}})");
  ASSERT_TRUE(policy) << policy.error().message();
  EXPECT_EQ(policy->mode, NetworkPolicy::Mode::Rules);
  ASSERT_EQ(policy->domains.size(), 1u);
  EXPECT_EQ(policy->domains[0].domain, "*.example.org");
  EXPECT_EQ(policy->allow_subnets.size(), 1u);
}

TEST(E2bNetwork, DeniesWhatIsNamed) {
  auto policy = policy_of(R"({"network":{"denyOut":["198.51.100.0/24"]}})");
  ASSERT_TRUE(policy);
  ASSERT_EQ(policy->domains.size(), 1u);
  EXPECT_EQ(policy->domains[0].domain, "*");
  EXPECT_EQ(policy->deny_subnets.size(), 1u);
}

TEST(E2bNetwork, SetsHeadersForDomains) {
  auto policy = policy_of(
      R"({"network":{"allowOut":["api.example.org"],"denyOut":["0.0.0.0/0"],
          "rules":{"api.example.org":[{"transform":{"headers":{"X-Key":"v"}}}]}}})");
  ASSERT_TRUE(policy) << policy.error().message();
  ASSERT_EQ(policy->domains.size(), 1u);
  ASSERT_EQ(policy->domains[0].rules.size(), 1u);
  EXPECT_EQ(policy->domains[0].rules[0].transforms[0].headers.at("X-Key"), "v");
}

sandbox::Ingress ingress_of(std::string_view text) {
  auto document = http::JsonDocument::parse(text);
  http::JsonObjectReader reader(**document->object());
  return read_network(reader)->ingress;
}

TEST(E2bNetwork, PortsArePublicUnlessAskedOtherwise) {
  EXPECT_TRUE(ingress_of("{}").public_ports);
  EXPECT_FALSE(ingress_of("{}").has_traffic_token);
  auto closed = ingress_of(
      R"({"network":{"allowPublicTraffic":false,"maskRequestHost":"localhost:${PORT}"}})");
  EXPECT_FALSE(closed.public_ports);
  EXPECT_TRUE(closed.has_traffic_token);
  EXPECT_EQ(closed.host, "localhost:${PORT}");
}

TEST(E2bNetwork, RefusesByName) {
  EXPECT_EQ(policy_of(R"({"network":{"maskRequestHost":"a\r\nb"}})").error().field(),
            "network.maskRequestHost");
  EXPECT_EQ(policy_of(R"({"network":{"egressProxy":{"address":"x"}}})").error().field(),
            "network.egressProxy");
  EXPECT_EQ(policy_of(R"({"network":{"denyOut":["10.0.0.0/8"],"allowOut":["10.0.0.1"]}})")
                .error()
                .field(),
            "network.allowOut");
  EXPECT_EQ(policy_of(R"({"network":{"denyOut":["example.org"]}})").error().field(),
            "network.denyOut");
}

}  // namespace
}  // namespace atl::api::e2b
