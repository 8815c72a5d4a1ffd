#include "registry/challenge.h"

#include "http/base64.h"
#include "http/headers.h"
#include "http/target.h"

namespace atl::registry {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == ',')) text.remove_prefix(1);
  return text;
}

// Takes one value, quoted or plain, from the front.
std::string take_value(std::string_view& rest) {
  std::string value;
  if (!rest.starts_with('"')) {
    size_t end = std::min(rest.find_first_of(", "), rest.size());
    value = rest.substr(0, end);
    rest.remove_prefix(end);
    return value;
  }
  rest.remove_prefix(1);
  while (!rest.empty() && rest.front() != '"') {
    if (rest.front() == '\\' && rest.size() > 1) rest.remove_prefix(1);
    value.push_back(rest.front());
    rest.remove_prefix(1);
  }
  if (!rest.empty()) rest.remove_prefix(1);
  return value;
}

}  // namespace

Result<Challenge> parse_challenge(std::string_view field) {
  Challenge challenge;
  field = trimmed(field);
  std::string_view scheme = field.substr(0, field.find(' '));
  if (http::equals_ignoring_case(scheme, "basic")) return challenge;
  if (!http::equals_ignoring_case(scheme, "bearer")) {
    return fail(ErrorCode::NotSupported, "the registry asks for a kind of login that is not known");
  }
  challenge.scheme = Challenge::Scheme::Bearer;
  std::string_view rest = trimmed(field.substr(scheme.size()));
  while (!rest.empty()) {
    size_t equals = rest.find('=');
    if (equals == rest.npos) break;
    std::string_view name = rest.substr(0, equals);
    rest.remove_prefix(equals + 1);
    std::string value = take_value(rest);
    if (http::equals_ignoring_case(name, "realm")) challenge.realm = value;
    if (http::equals_ignoring_case(name, "service")) challenge.service = value;
    if (http::equals_ignoring_case(name, "scope")) challenge.scope = value;
    rest = trimmed(rest);
  }
  if (challenge.realm.empty()) {
    return fail(ErrorCode::InvalidArgument, "the registry does not say where its tokens are");
  }
  return challenge;
}

std::string token_url(const Challenge& challenge, std::string_view fallback_scope) {
  std::string_view scope = challenge.scope.empty() ? fallback_scope : challenge.scope;
  std::string url = challenge.realm;
  url += url.find('?') == url.npos ? '?' : '&';
  url += "scope=" + http::percent_encode(scope);
  if (!challenge.service.empty()) url += "&service=" + http::percent_encode(challenge.service);
  return url;
}

std::string basic_authorization(const Credentials& credentials) {
  return "Basic " + http::base64_encode(credentials.user + ":" + credentials.password);
}

}  // namespace atl::registry
