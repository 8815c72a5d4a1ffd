#include "api/e2b/call.h"

#include <algorithm>

#include "api/e2b/errors.h"
#include "api/e2b/lifetime.h"
#include "api/own_ports.h"
#include "http/base64.h"

namespace atl::api::e2b {
namespace {

constexpr size_t kMaxPasswd = 1u << 20;

Task<Result<std::string>> home_of(SandboxSession& session, const std::string& user) {
  // The two that every template of ours has.
  if (user == "root") co_return "/root";
  if (user == "user") co_return "/home/user";
  ATOLL_CO_ASSIGN(auto file, co_await session.read_file("/etc/passwd", {.limit = kMaxPasswd}));
  std::string passwd;
  for (;;) {
    ATOLL_CO_ASSIGN(std::string_view part, co_await file->read());
    if (part.empty()) break;
    passwd.append(part);
  }
  std::string home = home_in_passwd(passwd, user);
  if (!home.empty()) co_return home;
  co_return fail(
      Error(ErrorCode::InvalidArgument, "no user '" + user + "' here").with_field("user"));
}

}  // namespace

std::string home_in_passwd(std::string_view passwd, std::string_view user) {
  constexpr int kHomeField = 5;
  while (!passwd.empty()) {
    size_t end = passwd.find('\n');
    std::string_view line = passwd.substr(0, end);
    passwd.remove_prefix(end == passwd.npos ? passwd.size() : end + 1);
    if (!line.starts_with(user) || line.substr(user.size(), 1) != ":") continue;
    for (int field = 0; field < kHomeField && !line.empty(); field++) {
      size_t colon = line.find(':');
      line.remove_prefix(colon == line.npos ? line.size() : colon + 1);
    }
    return std::string(line.substr(0, line.find(':')));
  }
  return {};
}

std::string Call::resolve(std::string_view path) const {
  if (path.empty()) return base;
  if (path == "~") return home;
  if (path.front() == '/') return std::string(path);
  bool of_home = path.starts_with("~/");
  if (of_home) path.remove_prefix(2);
  const std::string& start = of_home ? home : base;
  return (start == "/" ? start : start + "/") + std::string(path);
}

Result<std::string> named_user(const http::Request& request) {
  constexpr std::string_view kBasic = "Basic ";
  if (auto named = request.query.get("username")) return std::string(*named);
  auto header = request.headers.get("authorization");
  if (!header) return std::string();
  if (header->size() <= kBasic.size() ||
      !http::equals_ignoring_case(header->substr(0, kBasic.size()), kBasic)) {
    return std::string();
  }
  auto decoded = http::base64_decode(header->substr(kBasic.size()));
  if (!decoded) {
    return fail(
        Error(ErrorCode::InvalidArgument, "the user is not base64").with_field("Authorization"));
  }
  return decoded->substr(0, decoded->find(':'));
}

static Task<Result<Call>> open_on(Context& context, http::Request& request,
                                  std::initializer_list<std::string_view> ports) {
  ATOLL_CO_ASSIGN(sandbox::SandboxPtr sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(std::string user, named_user(request));
  ATOLL_CO_TRY(co_await wake(context, sandbox));
  ATOLL_CO_ASSIGN(auto session, co_await context.manager.session(sandbox));
  if (std::find(ports.begin(), ports.end(), request.param("port")) == ports.end()) {
    co_return fail(port_not_open(request.param("port")));
  }
  if (user.empty()) user = sandbox->record.spec.user;
  ATOLL_CO_ASSIGN(std::string home, co_await home_of(*session, user));
  const std::string& workdir = sandbox->record.spec.workdir;
  std::string base = workdir.empty() ? home : workdir;
  co_return Call{.target = Target(context.manager, std::move(sandbox), std::move(session)),
                 .user = std::move(user),
                 .home = std::move(home),
                 .base = std::move(base)};
}

Task<Result<Call>> open_call(Context& context, http::Request& request) {
  co_return co_await open_on(context, request, {kDaemonPort});
}

Task<Result<Call>> open_interpreter_call(Context& context, http::Request& request) {
  co_return co_await open_on(context, request, {kInterpreterPort});
}

Task<Result<Call>> open_any_call(Context& context, http::Request& request) {
  co_return co_await open_on(context, request, {kDaemonPort, kInterpreterPort});
}

}  // namespace atl::api::e2b
