#include "api/context.h"

#include <openssl/crypto.h>

#include <charconv>

#include "http/status.h"

namespace atl::api {
namespace {

bool same_secret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

// A Unix socket's permissions have said who may connect; anything else must show the key.
Result<void> authenticate(const Context& context, const http::Request& request) {
  if (request.peer.kind == http::Peer::Kind::Unix) return {};
  auto header = request.headers.get("authorization");
  constexpr std::string_view kScheme = "Bearer ";
  if (!header || !header->starts_with(kScheme)) {
    return fail(ErrorCode::Unauthenticated, "send 'Authorization: Bearer KEY'");
  }
  if (context.api_key.empty() || !same_secret(header->substr(kScheme.size()), context.api_key)) {
    return fail(ErrorCode::Unauthenticated, "the API key is wrong");
  }
  return {};
}

Task<void> run(Context& context, const Action& action, http::Request& request,
               http::ResponseWriter& writer) {
  auto result = co_await action(context, request, writer);
  // Once bytes of a body are out an error can only show as a broken connection.
  if (!result && !writer.started()) (void)co_await writer.send_error(std::move(result).error());
}

}  // namespace

http::Handler open_to_all(Context& context, Action action) {
  return [&context, action = std::move(action)](http::Request& request,
                                                http::ResponseWriter& writer) -> Task<void> {
    return run(context, action, request, writer);
  };
}

http::Handler guarded(Context& context, Action action) {
  Action checked = [action = std::move(action)](
                       Context& ctx, http::Request& request,
                       http::ResponseWriter& writer) -> Task<Result<void>> {
    auto allowed = authenticate(ctx, request);
    if (!allowed) co_return allowed;
    co_return co_await action(ctx, request, writer);
  };
  return open_to_all(context, std::move(checked));
}

Task<Result<http::JsonDocument>> read_json(http::Request& request, size_t limit) {
  auto body = co_await request.body->read_all(limit);
  if (!body) co_return fail(std::move(body).error());
  // The document, and what is made of it.
  if (body->size() > http::MemoryShare::kFree) ATOLL_CO_TRY(request.memory.take(2 * body->size()));
  co_return http::JsonDocument::parse(body->empty() ? "{}" : *body, limit);
}

Result<sandbox::SandboxPtr> find_sandbox(Context& context, const http::Request& request) {
  return context.manager.find(request.param("id"));
}

Result<Target> find_running(Context& context, const http::Request& request) {
  ATOLL_ASSIGN(sandbox::SandboxPtr sandbox, find_sandbox(context, request));
  ATOLL_ASSIGN(auto session, context.manager.session(*sandbox));
  return Target(std::move(sandbox), std::move(session));
}

Result<int32_t> pid_of(const http::Request& request) {
  const std::string& text = request.param("pid");
  int32_t pid = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error == std::errc() && end == text.data() + text.size() && pid > 0) return pid;
  return fail(
      Error(ErrorCode::InvalidArgument, "'" + text + "' is not a process id").with_field("pid"));
}

Result<uint64_t> number(const http::Request& request, std::string_view name, uint64_t fallback) {
  auto value = request.query.get(name);
  if (!value) return fallback;
  uint64_t parsed = 0;
  auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), parsed);
  if (error != std::errc() || end != value->data() + value->size()) {
    return fail(Error(ErrorCode::InvalidArgument, std::string(name) + " must be a whole number")
                    .with_field(name));
  }
  return parsed;
}

}  // namespace atl::api
