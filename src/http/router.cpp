#include "http/router.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <vector>

#include "base/log.h"

namespace atl::http {

// Names belong to the route and not to the node: "/a/{x}" and "/a/{y}/b" share a node.
struct Route {
  std::string method;
  std::string pattern;
  std::vector<std::string> names;
  Handler handler;
};

struct Router::Node {
  void list(std::vector<Pattern>& out) const {
    for (const auto& all : {&routes, &tails}) {
      for (const Route& route : *all) out.push_back({route.method, route.pattern});
    }
    for (const auto& [segment, child] : statics) child->list(out);
    if (parameter) parameter->list(out);
  }

  std::map<std::string, std::unique_ptr<Node>, std::less<>> statics;
  std::unique_ptr<Node> parameter;
  std::vector<Route> routes;  // paths that end here
  std::vector<Route> tails;   // paths that go on below here, whatever they hold
};

namespace {

const Route* route_for(const std::vector<Route>& routes, std::string_view method) {
  auto found = std::find_if(routes.begin(), routes.end(),
                            [&](const Route& route) { return route.method == method; });
  return found == routes.end() ? nullptr : &*found;
}

[[noreturn]] void refuse_pattern(std::string_view method, std::string_view pattern) {
  log(LogLevel::Error, "bad route pattern",
      {{"method", std::string(method)}, {"pattern", std::string(pattern)}});
  std::abort();
}

// The first segment, and what follows its slash if there is one.
struct Step {
  std::string_view segment;
  std::optional<std::string_view> rest;
};
Step next_step(std::string_view path) {
  size_t slash = path.find('/');
  if (slash == std::string_view::npos) return {path, std::nullopt};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

}  // namespace

// Depth-first with backtracking; a node that lacks only the method is remembered for Allow.
struct Router::Search {
  std::string_view method;
  std::vector<std::string_view> captures;
  std::vector<std::string> allowed;
  const Route* found = nullptr;

  bool accept(const std::vector<Route>& routes) {
    found = route_for(routes, method);
    if (found == nullptr && method == "HEAD") found = route_for(routes, "GET");
    if (found != nullptr) return true;
    for (const Route& route : routes) {
      allowed.push_back(route.method);
      if (route.method == "GET") allowed.emplace_back("HEAD");
    }
    return false;
  }

  bool walk(const Node& node, std::string_view path) {
    auto [segment, rest] = next_step(path);
    if (auto next = node.statics.find(segment); next != node.statics.end()) {
      if (rest ? walk(*next->second, *rest) : accept(next->second->routes)) return true;
    }
    if (node.parameter && !segment.empty()) {
      captures.push_back(segment);
      if (rest ? walk(*node.parameter, *rest) : accept(node.parameter->routes)) return true;
      captures.pop_back();
    }
    captures.push_back(path);
    if (accept(node.tails)) return true;
    captures.pop_back();
    return false;
  }
};

Router::Router() : root_(std::make_unique<Node>()) {}
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;
Router::~Router() = default;

void Router::add(std::string_view method, std::string_view pattern, Handler handler) {
  if (!pattern.starts_with('/')) refuse_pattern(method, pattern);
  Node* node = root_.get();
  Route route{std::string(method), std::string(pattern), {}, std::move(handler)};
  std::vector<Route>* home = nullptr;
  std::optional<std::string_view> rest = pattern.substr(1);
  while (rest) {
    if (home != nullptr) refuse_pattern(method, pattern);  // something follows a tail
    auto [segment, after] = next_step(*rest);
    rest = after;
    if (segment.starts_with('{') != segment.ends_with('}')) refuse_pattern(method, pattern);
    if (!segment.starts_with('{')) {
      auto& child = node->statics[std::string(segment)];
      if (!child) child = std::make_unique<Node>();
      node = child.get();
    } else if (segment.ends_with("...}")) {
      route.names.emplace_back(segment.substr(1, segment.size() - 5));
      home = &node->tails;
    } else {
      route.names.emplace_back(segment.substr(1, segment.size() - 2));
      if (!node->parameter) node->parameter = std::make_unique<Node>();
      node = node->parameter.get();
    }
  }
  if (home == nullptr) home = &node->routes;
  if (route_for(*home, method) != nullptr) refuse_pattern(method, pattern);
  home->push_back(std::move(route));
}

void Router::set_fallback(Handler handler) { fallback_ = std::move(handler); }

void Router::add_branch(Claim claims, Router branch) {
  branches_.emplace_back(std::move(claims), std::make_unique<Router>(std::move(branch)));
}

const Router& Router::serving(const Request& request) const {
  for (const auto& [claims, branch] : branches_) {
    if (claims(request)) return *branch;
  }
  return *this;
}

std::vector<Router::Pattern> Router::patterns() const {
  std::vector<Pattern> all;
  root_->list(all);
  std::sort(all.begin(), all.end());
  return all;
}

Result<Router::Match> Router::find(std::string_view method, std::string_view encoded_path) const {
  Match match;
  Search search{.method = method};
  if (encoded_path.starts_with('/') && search.walk(*root_, encoded_path.substr(1))) {
    for (size_t i = 0; i < search.captures.size(); i++) {
      ATOLL_ASSIGN(std::string value, percent_decode(search.captures[i]));
      match.params.add(search.found->names[i], std::move(value));
    }
    match.kind = Match::Kind::Found;
    match.handler = &search.found->handler;
    match.pattern = search.found->pattern;
    return match;
  }
  if (!search.allowed.empty()) {
    match.kind = Match::Kind::MethodNotAllowed;
    std::sort(search.allowed.begin(), search.allowed.end());
    auto end = std::unique(search.allowed.begin(), search.allowed.end());
    for (auto name = search.allowed.begin(); name != end; ++name) {
      match.allow.append(match.allow.empty() ? "" : ", ").append(*name);
    }
    return match;
  }
  if (fallback_) {
    match.kind = Match::Kind::Found;
    match.handler = &fallback_;
  }
  return match;
}

}  // namespace atl::http
