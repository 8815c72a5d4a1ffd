// What a handler sees of a request, and the whole response it may answer with.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "http/body.h"
#include "http/headers.h"
#include "http/memory_budget.h"
#include "http/target.h"

namespace atl::http {

// Who is at the other end. The kernel vouches for uid, gid and pid of a Unix socket's peer as they
// were when it connected. A Unix peer is trusted, so nobody is one by default.
struct Peer {
  enum class Kind { Unix, Tcp };
  Kind kind = Kind::Tcp;
  uid_t uid = static_cast<uid_t>(-1);
  gid_t gid = static_cast<gid_t>(-1);
  pid_t pid = 0;
  std::string address;
  uint16_t port = 0;
};

// The named segments of the pattern that matched, decoded.
class PathParams {
 public:
  void add(std::string_view name, std::string value) {
    values_.emplace_back(name, std::move(value));
  }
  void clear() { values_.clear(); }
  // Empty when the pattern has no such name.
  const std::string& get(std::string_view name) const;

 private:
  std::vector<std::pair<std::string, std::string>> values_;
};

struct Request {
  std::string method;
  std::string target;     // as sent
  std::string path;       // decoded, without the query; for messages, not for routing
  int minor_version = 1;  // of HTTP/1.x
  Query query;
  Headers headers;
  PathParams params;
  Peer peer;
  BodyReader* body = nullptr;  // never null in a handler
  MemoryShare memory;          // for what a handler keeps beyond a little

  const std::string& param(std::string_view name) const { return params.get(name); }
};

struct Response {
  int status = 200;
  Headers headers;
  std::string body;

  static Response json(std::string body, int status = 200);
  static Response text(std::string body, int status = 200);
  static Response empty(int status = 204);
};

}  // namespace atl::http
