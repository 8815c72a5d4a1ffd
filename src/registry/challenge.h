// What a registry asks for with 401: the WWW-Authenticate field.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::registry {

struct Challenge {
  enum class Scheme { Basic, Bearer };
  Scheme scheme = Scheme::Basic;
  std::string realm;  // where tokens are
  std::string service;
  std::string scope;
};

Result<Challenge> parse_challenge(std::string_view field);

// The realm with its question: "https://auth.example/token?service=..&scope=..".
std::string token_url(const Challenge& challenge, std::string_view fallback_scope);

struct Credentials {
  std::string user;
  std::string password;
  bool empty() const { return user.empty(); }
};
std::string basic_authorization(const Credentials& credentials);

}  // namespace atl::registry
