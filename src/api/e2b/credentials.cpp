#include "api/e2b/credentials.h"

#include <algorithm>
#include <charconv>

#include "api/own_ports.h"
#include "api/service.h"
#include "auth/digest.h"
#include "http/base64.h"

namespace atl::api::e2b {
namespace {

constexpr std::string_view kKeyPrefix = "e2b_";
constexpr std::string_view kIdPrefix = "sandbox-";
constexpr std::string_view kDigits = "0123456789abcdef";

// "49983-sandbox-abc.example.com:3000" is port 49983 of sandbox-abc. Other hosts whose names begin
// with a number ("10-0-0-5.example.com") are the server's own.
struct SandboxHost {
  std::string_view port;
  std::string_view id;
};

std::optional<SandboxHost> parse_host(std::string_view host) {
  size_t dot = host.find('.');
  size_t dash = host.find('-');
  if (dot == host.npos || dash == 0 || dash >= dot) return std::nullopt;
  SandboxHost parsed{host.substr(0, dash), host.substr(dash + 1, dot - dash - 1)};
  bool digits = std::all_of(parsed.port.begin(), parsed.port.end(),
                            [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || !parsed.id.starts_with(kIdPrefix)) return std::nullopt;
  return parsed;
}

// Longer ones name no file, and each may be hashed for many sandboxes.
constexpr size_t kMaxPath = 4096;

bool is_signed(const http::Request& request) {
  return request.path == "/files" && request.query.get("signature").has_value() &&
         request.query.get("path").value_or("").size() <= kMaxPath;
}

std::string_view query_text(const http::Request& request, std::string_view name) {
  return request.query.get(name).value_or("");
}

bool has_expired(std::string_view expiration) {
  if (expiration.empty()) return false;
  int64_t at = 0;
  auto [end, error] = std::from_chars(expiration.data(), expiration.data() + expiration.size(), at);
  bool good = error == std::errc() && end == expiration.data() + expiration.size();
  return !good || at < sandbox::wall_clock_ms() / 1000;
}

bool signature_fits(Service& service, const http::Request& request, const sandbox::Record& record) {
  SignedPath what{.path = query_text(request, "path"),
                  .operation = request.method == "GET" ? "read" : "write",
                  .user = query_text(request, "username"),
                  .expiration = query_text(request, "signature_expiration")};
  std::string expected = sign(what, service.tokens.runtime_token(record.id, record.generation));
  return auth::same_secret(query_text(request, "signature"), expected);
}

tl::unexpected<Error> gone() {
  return fail(ErrorCode::Unauthenticated, "the token is not valid for this sandbox");
}

}  // namespace

std::string wrap_key(std::string_view key) {
  std::string text(kKeyPrefix);
  for (unsigned char c : key) {
    text += kDigits[c >> 4];
    text += kDigits[c & 15];
  }
  return text;
}

std::optional<std::string> unwrap_key(std::string_view text) {
  if (!text.starts_with(kKeyPrefix)) return std::nullopt;
  text.remove_prefix(kKeyPrefix.size());
  if (text.empty() || text.size() % 2 != 0 || !auth::is_lower_hex(text)) return std::nullopt;
  std::string key;
  for (size_t at = 0; at < text.size(); at += 2) {
    key += static_cast<char>(kDigits.find(text[at]) << 4 | kDigits.find(text[at + 1]));
  }
  return key;
}

Result<Principal> authenticate_control(Service& service, const http::Request& request) {
  auto presented = request.headers.get("x-api-key");
  if (!presented) return authenticate(service, request);
  std::string key = unwrap_key(*presented).value_or(std::string(*presented));
  ATOLL_ASSIGN(Principal who, key_principal(service, key));
  ATOLL_TRY(apply_tenant(request, who));
  return who;
}

std::string sign(const SignedPath& what, std::string_view token) {
  std::string text;
  text.append(what.path).append(":").append(what.operation).append(":").append(what.user);
  text.append(":").append(token);
  if (!what.expiration.empty()) text.append(":").append(what.expiration);
  std::string encoded = http::base64_encode(auth::as_text(auth::sha256(text)));
  encoded.erase(encoded.find_last_not_of('=') + 1);
  return "v1_" + encoded;
}

// Its packages show the interpreter no other token than this for all but cells.
static bool is_interpreter_traffic(Service& service, const http::Request& request,
                                   const sandbox::Record& record) {
  auto token = request.headers.get("e2b-traffic-access-token");
  return token && request.param("port") == kInterpreterPort &&
         service.tokens.is_traffic_token(*token, record.id, record.generation);
}

Result<Principal> authenticate_sandbox(Service& service, const http::Request& request) {
  auto sandbox = service.manager.index().find(request.param("id"));
  if (sandbox == nullptr) return gone();
  const sandbox::Record& record = sandbox->record;
  auto token = request.headers.get("x-access-token");
  if (token && service.tokens.is_runtime_token(*token, record.id, record.generation)) {
    return runtime_principal(record);
  }
  if (!token && is_interpreter_traffic(service, request, record)) return runtime_principal(record);
  if (token || !is_signed(request) || !signature_fits(service, request, record)) return gone();
  if (has_expired(query_text(request, "signature_expiration"))) {
    return fail(ErrorCode::PermissionDenied, "signature is already expired");
  }
  return runtime_principal(record);
}

bool names_sandbox(const http::Request& request) {
  if (request.headers.contains("e2b-sandbox-id") || is_signed(request)) return true;
  return parse_host(request.headers.get("host").value_or("")).has_value();
}

void address_sandbox(Service& service, http::Request& request) {
  std::string id, port(kDaemonPort);
  if (auto named = request.headers.get("e2b-sandbox-id")) {
    id = *named;
    if (auto asked = request.headers.get("e2b-sandbox-port")) port = *asked;
  } else if (auto host = parse_host(request.headers.get("host").value_or(""))) {
    id = host->id;
    port = host->port;
  } else {
    // With one URL for all sandboxes a signed link names none: its signature fits only one.
    for (const auto& [candidate, sandbox] : service.manager.index().all()) {
      if (!signature_fits(service, request, sandbox->record)) continue;
      id = candidate;
      break;
    }
  }
  request.params.add("id", std::move(id));
  request.params.add("port", std::move(port));
}

}  // namespace atl::api::e2b
