#include "http/router.h"

#include <gtest/gtest.h>

namespace atl::http {
namespace {

// Matches are told apart by handler address, so each route gets a handler of its own.
Handler nothing() {
  return [](Request&, ResponseWriter&) -> Task<void> { co_return; };
}

using Kind = Router::Match::Kind;

TEST(Router, CapturesNamedSegmentsDecoded) {
  Router router;
  router.add("GET", "/v1/sandboxes/{id}/ports/{port}", nothing());
  auto match = *router.find("GET", "/v1/sandboxes/a%2Fb/ports/80");
  EXPECT_EQ(match.kind, Kind::Found);
  EXPECT_EQ(match.params.get("id"), "a/b");
  EXPECT_EQ(match.params.get("port"), "80");
  EXPECT_EQ(match.params.get("other"), "");
}

TEST(Router, ListsEveryRouteAsItWasAdded) {
  Router router;
  router.add("POST", "/s", nothing());
  router.add("GET", "/s/{id}/fs/{path...}", nothing());
  router.add("GET", "/s/{name}", nothing());
  router.add("GET", "/", nothing());
  router.set_fallback(nothing());
  std::vector<Router::Pattern> expected = {
      {"GET", "/"}, {"GET", "/s/{id}/fs/{path...}"}, {"GET", "/s/{name}"}, {"POST", "/s"}};
  EXPECT_EQ(router.patterns(), expected);
}

TEST(Router, MatchNamesThePatternThatWasFound) {
  Router router;
  router.add("GET", "/s/{id}", nothing());
  EXPECT_EQ(router.find("GET", "/s/web")->pattern, "/s/{id}");
  EXPECT_EQ(router.find("HEAD", "/s/web")->pattern, "/s/{id}");
  EXPECT_EQ(router.find("POST", "/s/web")->pattern, "");
}

TEST(Router, TailKeepsSlashesAndIsDecoded) {
  Router router;
  router.add("GET", "/v1/sandboxes/{id}/fs/{path...}", nothing());
  EXPECT_EQ(router.find("GET", "/v1/sandboxes/x/fs/a/b%20c//d/")->params.get("path"), "a/b c//d/");
  EXPECT_EQ(router.find("GET", "/v1/sandboxes/x/fs//etc/hosts")->params.get("path"), "/etc/hosts");
  EXPECT_EQ(router.find("GET", "/v1/sandboxes/x/fs/")->kind, Kind::Found);
  EXPECT_EQ(router.find("GET", "/v1/sandboxes/x/fs")->kind, Kind::NotFound);
}

TEST(Router, StaticSegmentsWinOverParametersWhateverTheOrder) {
  Router router;
  router.add("GET", "/s/{path...}", nothing());
  router.add("GET", "/s/{id}", nothing());
  router.add("GET", "/s/list", nothing());
  auto list = *router.find("GET", "/s/list");
  auto other = *router.find("GET", "/s/lists");
  auto deep = *router.find("GET", "/s/list/x");
  EXPECT_EQ(list.params.get("id"), "");
  EXPECT_EQ(other.params.get("id"), "lists");
  EXPECT_EQ(deep.params.get("path"), "list/x");
  EXPECT_NE(list.handler, other.handler);
}

TEST(Router, ComesBackFromAStaticDeadEnd) {
  Router router;
  router.add("GET", "/s/list/all", nothing());
  router.add("GET", "/s/{id}/info", nothing());
  EXPECT_EQ(router.find("GET", "/s/list/info")->params.get("id"), "list");
}

TEST(Router, TellsWrongMethodFromWrongPath) {
  Router router;
  router.add("GET", "/a", nothing());
  router.add("POST", "/a", nothing());
  auto match = *router.find("DELETE", "/a");
  EXPECT_EQ(match.kind, Kind::MethodNotAllowed);
  EXPECT_EQ(match.allow, "GET, HEAD, POST");
  EXPECT_EQ(router.find("DELETE", "/b")->kind, Kind::NotFound);
}

TEST(Router, MethodOfALessSpecificPatternStillAnswers) {
  Router router;
  router.add("POST", "/a/b", nothing());
  router.add("GET", "/a/{x}", nothing());
  EXPECT_EQ(router.find("GET", "/a/b")->params.get("x"), "b");
}

TEST(Router, HeadIsAnsweredFromGet) {
  Router router;
  router.add("GET", "/a", nothing());
  EXPECT_EQ(router.find("HEAD", "/a")->kind, Kind::Found);
}

TEST(Router, ParametersMatchNoEmptySegment) {
  Router router;
  router.add("GET", "/a/{x}", nothing());
  EXPECT_EQ(router.find("GET", "/a/")->kind, Kind::NotFound);
  EXPECT_EQ(router.find("GET", "/a//")->kind, Kind::NotFound);
}

TEST(Router, MatchesTheRoot) {
  Router router;
  router.add("GET", "/", nothing());
  EXPECT_EQ(router.find("GET", "/")->kind, Kind::Found);
  EXPECT_EQ(router.find("GET", "/x")->kind, Kind::NotFound);
}

TEST(Router, RefusesCapturesThatCannotBeDecoded) {
  Router router;
  router.add("GET", "/a/{x}", nothing());
  EXPECT_FALSE(router.find("GET", "/a/%zz"));
}

TEST(Router, FallbackTakesWhatNoPatternMatches) {
  Router router;
  router.add("GET", "/a", nothing());
  router.set_fallback(nothing());
  EXPECT_EQ(router.find("GET", "/index.html")->kind, Kind::Found);
  EXPECT_EQ(router.find("POST", "/a")->kind, Kind::MethodNotAllowed);
}

TEST(RouterDeathTest, DoubledAndMalformedPatternsAbort) {
  Router router;
  router.add("GET", "/a/{x}", nothing());
  EXPECT_DEATH(router.add("GET", "/a/{y}", nothing()), "bad route");
  EXPECT_DEATH(router.add("GET", "no-slash", nothing()), "bad route");
  EXPECT_DEATH(router.add("GET", "/{x...}/more", nothing()), "bad route");
  EXPECT_DEATH(router.add("GET", "/{x", nothing()), "bad route");
}

}  // namespace
}  // namespace atl::http
