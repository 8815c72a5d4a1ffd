// The description of the API and the route table say the same.
#include "api/routes.h"

#include <gmock/gmock.h>

#include <boost/json.hpp>
#include <set>

namespace atl::api {
namespace {

namespace json = boost::json;

// "GET /v1/sandboxes/{id} read"
std::string line(std::string method, std::string pattern, std::string_view access) {
  return method + " " + pattern + " " + std::string(access);
}

std::set<std::string> served(const ServiceSettings& settings) {
  std::set<std::string> lines;
  for (const Route& route : route_table(settings)) {
    lines.insert(line(route.method, route.pattern, to_string(route.access)));
  }
  return lines;
}

json::object document() { return json::parse(openapi_json()).as_object(); }

// OpenAPI has no name for the rest of a path.
std::string as_pattern(std::string path) {
  constexpr std::string_view kTail = "/{path}";
  if (path.ends_with(kTail)) path.insert(path.size() - 1, "...");
  return path;
}

std::set<std::string> described() {
  std::set<std::string> lines;
  json::object all = document();
  for (const auto& [path, item] : all.at("paths").as_object()) {
    for (const auto& [method, operation] : item.as_object()) {
      if (method == "parameters") continue;
      std::string name(method);
      for (char& c : name) c = static_cast<char>(toupper(c));
      lines.insert(line(name, as_pattern(path), operation.at("x-atoll-access").as_string()));
    }
  }
  return lines;
}

TEST(OpenApi, DescribesExactlyTheRoutes) {
  EXPECT_THAT(described(), testing::ContainerEq(served({})));
}

TEST(OpenApi, EveryRouteIsInTheTableOnce) {
  EXPECT_EQ(served({}).size(), route_table({}).size());
  EXPECT_GT(route_table({}).size(), 200u);
}

TEST(OpenApi, PublicMetricsAreTheOnlyRouteThatASettingOpens) {
  auto usual = served({});
  auto open = served({.public_metrics = true});
  EXPECT_EQ(usual.erase("GET /metrics admin"), 1u);
  EXPECT_EQ(open.erase("GET /metrics open"), 1u);
  EXPECT_EQ(usual, open);
}

// Unknown fields are refused, and the description says so.
TEST(OpenApi, RequestsHaveNoFurtherFields) {
  json::value all = document();
  for (const auto& [path, item] : all.at("paths").as_object()) {
    for (const auto& [method, operation] : item.as_object()) {
      const json::value* body =
          operation.is_object() ? operation.as_object().if_contains("requestBody") : nullptr;
      if (body == nullptr) continue;
      const json::value* content = body->at("content").as_object().if_contains("application/json");
      if (content == nullptr) continue;
      const json::object* schema = &content->at("schema").as_object();
      if (const json::value* named = schema->if_contains("$ref")) {
        std::string pointer(named->as_string().subview(1));
        schema = &all.at_pointer(pointer).as_object();
      }
      EXPECT_EQ(schema->at("additionalProperties"), false) << path << " " << method;
    }
  }
}

}  // namespace
}  // namespace atl::api
