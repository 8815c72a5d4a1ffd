// A sandbox's own certificate authority: what it signs is good for the names that its policy
// intercepts, inside that sandbox, and nowhere else.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "http/tls_context.h"

namespace atl::egress {

class Authority {
 public:
  // The key follows from the seed, so the same sandbox has the same authority after a restart. No
  // domain among `domains` ("*.x", "x", "*") but "*" leaves it without constraints.
  static Result<std::unique_ptr<Authority>> create(std::string_view seed,
                                                   const std::vector<std::string>& domains);
  ~Authority();

  const std::string& certificate() const { return pem_; }
  // For a server that is to appear as `name`; kept, because every connection needs one.
  Result<ssl_ctx_st*> context_for(const std::string& name);

 private:
  struct Keys;
  explicit Authority(std::unique_ptr<Keys> keys);
  Result<http::SslContext> make_context(const std::string& name);

  std::unique_ptr<Keys> keys_;
  std::string pem_;
  struct Kept {
    std::string name;
    http::SslContext context;
  };
  std::list<Kept> recent_;  // the latest used first
  std::unordered_map<std::string, std::list<Kept>::iterator> by_name_;
};

}  // namespace atl::egress
