#include "api/access.h"

namespace atl::api {

std::string_view to_string(Access access) {
  static constexpr std::string_view kNames[] = {
      "open", "read", "write", "admin", "runtime-read", "runtime-write", "runtime-terminal"};
  return kNames[static_cast<size_t>(access)];
}

namespace {

tl::unexpected<Error> denied(std::string why) {
  return fail(ErrorCode::PermissionDenied, std::move(why));
}

Result<void> authorize_role(auth::Role role, Access access) {
  if (role == auth::Role::Admin) return {};
  if (access == Access::Admin) return denied("this needs an administrator's key");
  if (role == auth::Role::Member) return {};
  if (!changes(access)) return {};
  return denied("this key may only read");
}

Result<void> authorize_scope(const Principal& who, Access access, const http::Request& request) {
  if (who.scope == "session") {
    bool own = access == Access::RuntimeTerminal && request.param("connection") == who.session_id;
    if (own) return {};
    return denied("this token is for one terminal session");
  }
  if (access == Access::RuntimeRead) return {};
  return denied("this token may only read");
}

}  // namespace

Result<void> authorize(const Principal& who, Access access, const http::Request& request) {
  if (access == Access::Open) return {};
  switch (who.kind) {
    case Principal::Kind::Nobody:
      return fail(ErrorCode::Unauthenticated, "send 'Authorization: Bearer KEY'");
    case Principal::Kind::Local:
      return {};
    case Principal::Kind::Key:
      return authorize_role(who.role, access);
    case Principal::Kind::Scoped:
    case Principal::Kind::Runtime:
      break;
  }
  if (!is_runtime(access)) return denied("this token is for a sandbox's runtime only");
  if (who.kind == Principal::Kind::Runtime) return {};
  return authorize_scope(who, access, request);
}

}  // namespace atl::api
