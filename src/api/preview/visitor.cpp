#include "api/preview/visitor.h"

#include <algorithm>
#include <optional>

#include "api/access.h"
#include "api/preview_url.h"
#include "http/forwarding.h"
#include "http/origin.h"

namespace atl::api::preview {
namespace {

using auth::PreviewPlace;
using auth::PreviewVerdict;
using sandbox::PreviewLink;
using By = Admitted::By;

constexpr std::string_view kBearer = "Bearer ";

std::string_view bearer_of(const http::Request& request) {
  std::string_view header = request.headers.get("authorization").value_or("");
  if (header.size() <= kBearer.size()) return {};
  if (!http::equals_ignoring_case(header.substr(0, kBearer.size()), kBearer)) return {};
  return header.substr(kBearer.size());
}

struct Verdict {
  PreviewVerdict verdict = PreviewVerdict::Wrong;
  const PreviewLink* link = nullptr;
};

Verdict check(Service& service, const Address& address, std::string_view token,
              PreviewPlace place) {
  auto id = auth::link_of_preview_token(token);
  const PreviewLink* link = id ? service.manager.previews().find(*id) : nullptr;
  if (link == nullptr || link->sandbox != address.sandbox || link->port != address.port) return {};
  auto sandbox = service.manager.index().find(address.sandbox);
  if (sandbox == nullptr || sandbox->record.generation != link->generation) return {};
  int64_t now = sandbox::wall_clock_ms();
  auto verdict = service.tokens.check_preview_token(token, grant_of(*link), place, now / 1000);
  if (verdict == PreviewVerdict::Good && link->expired(now)) verdict = PreviewVerdict::Expired;
  return {verdict, link};
}

// All that a request shows of preview tokens; what is good counts, whatever else is there.
struct Shown {
  bool expired = false;
  bool any = false;
  std::optional<Admitted> admitted;

  void look(Service& service, const Address& address, std::string_view token, PreviewPlace place,
            By by) {
    if (token.empty() || admitted) return;
    any = true;
    Verdict found = check(service, address, token, place);
    if (found.verdict == PreviewVerdict::Expired) expired = true;
    if (found.verdict == PreviewVerdict::Good) {
      admitted = Admitted{.by = by, .sandbox = nullptr, .link = found.link->id};
    }
  }
};

Shown shown(Service& service, const http::Request& request, const Address& address) {
  Shown all;
  auto header = request.headers.get(kTokenHeader).value_or("");
  all.look(service, address, header, PreviewPlace::Url, By::Credential);
  std::string_view bearer = bearer_of(request);
  if (auth::link_of_preview_token(bearer)) {
    all.look(service, address, bearer, PreviewPlace::Url, By::Credential);
  }
  auto query = request.query.get(kPreviewParameter).value_or("");
  all.look(service, address, query, PreviewPlace::Url, By::Url);
  // The API's origin has no cookies, lest a page there should use somebody's.
  if (address.form == Form::Host) {
    std::string cookie = cookie_of(request.headers, cookie_name(service.settings));
    all.look(service, address, cookie, PreviewPlace::Cookie, By::Cookie);
  }
  return all;
}

bool is_public(Service& service, const sandbox::Sandbox& sandbox, uint16_t port) {
  const sandbox::Record& record = sandbox.record;
  return record.spec.ingress.public_ports ||
         service.manager.previews().is_public(record.id, port, sandbox::wall_clock_ms());
}

bool has_traffic_token(Service& service, const http::Request& request,
                       const sandbox::Sandbox& sandbox) {
  const sandbox::Record& record = sandbox.record;
  auto token = request.headers.get(kTrafficHeader);
  return token && record.spec.ingress.has_traffic_token &&
         service.tokens.is_traffic_token(*token, record.id, record.generation);
}

// A key, a scoped token or the sandbox's bearer, as the API takes them.
Result<Admitted> admit_principal(Service& service, const http::Request& request,
                                 const Address& address) {
  http::Request asked;
  asked.peer = request.peer;
  asked.headers.add("Authorization", std::string(*request.headers.get("authorization")));
  if (auto tenant = request.headers.get("atoll-tenant")) {
    asked.headers.add("Atoll-Tenant", std::string(*tenant));
  }
  asked.params.add("id", address.sandbox);
  ATOLL_ASSIGN(Principal who, authenticate(service, asked));
  bool looks = (request.method == "GET" || request.method == "HEAD") &&
               !http::wants_upgrade(request.headers);
  ATOLL_TRY(authorize(who, looks ? Access::RuntimeRead : Access::RuntimeWrite, asked));
  auto sandbox = service.manager.index().find(address.sandbox);
  if (sandbox == nullptr || !who.caller.may_see(sandbox->record)) {
    return fail(ErrorCode::NotFound, "there is no such sandbox");
  }
  return Admitted{.by = By::Credential, .sandbox = std::move(sandbox), .link = {}};
}

tl::unexpected<Error> refused(const Shown& tokens) {
  if (tokens.expired) {
    return fail(ErrorCode::Unauthenticated, "this link has expired; ask its owner for another");
  }
  if (tokens.any) {
    return fail(ErrorCode::Unauthenticated,
                "this link is not valid, or not any more; ask its owner for another");
  }
  return fail(ErrorCode::Unauthenticated,
              "this port is private, or there is no such sandbox; open it by a link from `atoll "
              "port`, or send an API key");
}

}  // namespace

std::string_view cookie_name(const ServiceSettings& settings) {
  bool local = settings.preview_domain == "localhost";
  bool secure = local || settings.base_url.starts_with("https://");
  return secure ? "__Host-atoll-preview" : "atoll-preview";
}

std::string cookie_of(const http::Headers& headers, std::string_view name) {
  for (const http::Field& field : headers) {
    if (!http::equals_ignoring_case(field.name, "cookie")) continue;
    std::string_view all = field.value;
    while (!all.empty()) {
      size_t end = std::min(all.find(';'), all.size());
      std::string_view one = http::trim(all.substr(0, end));
      all.remove_prefix(std::min(end + 1, all.size()));
      size_t equals = one.find('=');
      if (equals != one.npos && one.substr(0, equals) == name) {
        return std::string(one.substr(equals + 1));
      }
    }
  }
  return {};
}

bool holds(Service& service, const Admitted& admitted, const Address& address) {
  if (admitted.by == By::Public) return is_public(service, *admitted.sandbox, address.port);
  return admitted.link.empty() || service.manager.previews().find(admitted.link) != nullptr;
}

Result<Admitted> admit(Service& service, const http::Request& request, const Address& address) {
  auto sandbox = service.manager.index().find(address.sandbox);
  if (sandbox != nullptr && is_public(service, *sandbox, address.port)) {
    return Admitted{.by = By::Public, .sandbox = std::move(sandbox), .link = {}};
  }
  Shown tokens = shown(service, request, address);
  if (tokens.admitted) {
    // Others' pages can make a browser send its cookie along; they cannot hide that it was them.
    if (tokens.admitted->by == By::Cookie && !http::is_origin_allowed(request, {})) {
      return fail(ErrorCode::PermissionDenied, "a page of another origin may not open this");
    }
    tokens.admitted->sandbox = std::move(sandbox);
    return std::move(*tokens.admitted);
  }
  if (sandbox != nullptr && has_traffic_token(service, request, *sandbox)) {
    return Admitted{.by = By::Credential, .sandbox = std::move(sandbox), .link = {}};
  }
  std::string_view bearer = bearer_of(request);
  bool own = service.tokens.is_own_credential(bearer, sandbox::wall_clock_ms());
  if (own && !auth::link_of_preview_token(bearer)) {
    return admit_principal(service, request, address);
  }
  // Whoever may open the server's own socket may open everything.
  if (request.peer.kind == http::Peer::Kind::Unix && !tokens.any && !own) {
    if (sandbox == nullptr) return fail(ErrorCode::NotFound, "there is no such sandbox");
    return Admitted{.by = By::Credential, .sandbox = std::move(sandbox), .link = {}};
  }
  return refused(tokens);
}

}  // namespace atl::api::preview
