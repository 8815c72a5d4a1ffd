#pragma once

#include <compare>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "atoll/task.h"
#include "base/result.h"
#include "http/message.h"
#include "http/response_writer.h"

namespace atl::http {

using Handler = std::function<Task<void>(Request&, ResponseWriter&)>;

// Finds the handler of a request in a tree of path segments. Patterns are static segments,
// "{name}" for one non-empty segment and "{name...}" for the rest of the path, which keeps its
// slashes and may be empty. Static segments win over parameters, parameters over tails. Matching
// is on encoded segments, so "%2F" never splits one; the captured values are decoded.
class Router {
 public:
  Router();
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;
  ~Router();

  // Patterns are the program's own text: a malformed or doubled one aborts.
  void add(std::string_view method, std::string_view pattern, Handler handler);
  // Instead of a 404 where no pattern matches.
  void set_fallback(Handler handler);

  // Requests for which `claims` says so are looked up in the other router and not here: for hosts
  // of their own on the same port.
  using Claim = std::function<bool(const Request&)>;
  void add_branch(Claim claims, Router branch);
  const Router& serving(const Request& request) const;

  struct Pattern {
    std::string method;
    std::string pattern;
    auto operator<=>(const Pattern&) const = default;
  };
  // Every route as it was added, sorted by method and pattern.
  std::vector<Pattern> patterns() const;

  struct Match {
    enum class Kind { Found, NotFound, MethodNotAllowed };
    Kind kind = Kind::NotFound;
    const Handler* handler = nullptr;
    std::string_view pattern;  // of the route found, valid as long as the router; else empty
    PathParams params;
    std::string allow;  // "GET, HEAD, POST", for MethodNotAllowed
  };
  // HEAD falls back to GET. Fails where a captured segment cannot be decoded.
  Result<Match> find(std::string_view method, std::string_view encoded_path) const;

 private:
  struct Node;
  struct Search;

  std::unique_ptr<Node> root_;
  Handler fallback_;
  std::vector<std::pair<Claim, std::unique_ptr<Router>>> branches_;
};

}  // namespace atl::http
