#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "api/routes.h"
#include "api/sandbox_body.h"
#include "api/shapes.h"

namespace atl::api {
namespace {

namespace json = boost::json;

constexpr size_t kMaxBody = 1u << 20;
constexpr uint64_t kMaxWaitMs = 300'000;

Task<Result<void>> reply(Context& context, const sandbox::Sandbox& sandbox,
                         http::ResponseWriter& writer, int status = 200) {
  return writer.send_json(json::serialize(sandbox_json(context, sandbox)), status);
}

// One that no sandbox ever has would be waited for in vain.
Result<void> check_status(std::string_view status) {
  if (sandbox::parse_status(status)) return {};
  return fail(Error(ErrorCode::InvalidArgument,
                    "a status is provisioning, running, paused, stopped or failed")
                  .with_field("status"));
}

Task<Result<void>> create(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, kMaxBody));
  ATOLL_CO_ASSIGN(std::string from, read_snapshot_name(document));
  sandbox::SnapshotPtr snapshot;
  if (!from.empty()) {
    ATOLL_CO_ASSIGN(snapshot, context.manager.find_snapshot(context.who.caller, from));
  }
  const sandbox::Spec* base = snapshot != nullptr ? &snapshot->source.spec : nullptr;
  ATOLL_CO_ASSIGN(sandbox::Spec spec, read_spec(context.service, document, base));
  const sandbox::Caller& caller = context.who.caller;
  auto sandbox = snapshot != nullptr
                     ? co_await context.manager.create_from(caller, snapshot, std::move(spec))
                     : co_await context.manager.create(caller, std::move(spec));
  if (!sandbox) co_return fail(std::move(sandbox).error());
  context.made = (*sandbox)->record.id;
  co_return co_await reply(context, **sandbox, writer, 201);
}

Task<Result<void>> list(Context& context, http::Request& request, http::ResponseWriter& writer) {
  auto wanted = request.query.all("status");
  for (std::string_view status : wanted) ATOLL_CO_TRY(check_status(status));
  ATOLL_CO_ASSIGN(uint64_t limit, number(request, "limit", UINT64_MAX));
  ATOLL_CO_ASSIGN(uint64_t offset, number(request, "offset", 0));
  json::array sandboxes;
  for (const sandbox::SandboxPtr& sandbox : context.manager.list(context.who.caller)) {
    std::string_view status = to_string(sandbox->record.status);
    bool matches =
        wanted.empty() || std::find(wanted.begin(), wanted.end(), status) != wanted.end();
    if (!matches) continue;
    if (offset > 0) {
      offset--;
      continue;
    }
    if (sandboxes.size() >= limit) break;
    sandboxes.push_back(sandbox_json(context, *sandbox));
  }
  json::object body{{"sandboxes", std::move(sandboxes)}};
  co_return co_await writer.send_json(json::serialize(body));
}

Task<Result<void>> get(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  co_return co_await reply(context, *sandbox, writer);
}

Task<Result<void>> remove(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_TRY(
      co_await context.manager.remove(sandbox, {sandbox::EndCause::Request, "deleted by request"}));
  co_return co_await writer.send_json(std::string(kSuccess));
}

Task<Result<void>> stop(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_TRY(
      co_await context.manager.stop(sandbox, {sandbox::EndCause::Request, "stopped by request"}));
  co_return co_await reply(context, *sandbox, writer);
}

Task<Result<void>> resume(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_TRY(co_await context.manager.resume(sandbox));
  co_return co_await reply(context, *sandbox, writer);
}

Task<Result<void>> pause(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, kMaxBody));
  ATOLL_CO_ASSIGN(const auto* object, document.object());
  http::JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(auto disk, reader.optional_bool("disk"));
  ATOLL_CO_TRY(reader.finish());
  auto paused = disk.value_or(false) ? co_await context.manager.pause_to_disk(sandbox)
                                     : co_await context.manager.set_paused(sandbox, true);
  if (!paused) co_return paused;
  co_return co_await reply(context, *sandbox, writer);
}

Task<Result<void>> update(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, kMaxBody));
  ATOLL_CO_ASSIGN(auto changes, read_changes(sandbox->record.spec, document));
  ATOLL_CO_TRY(co_await context.manager.update(sandbox, context.who.caller, std::move(changes)));
  co_return co_await reply(context, *sandbox, writer);
}

// Long polling for a state, so that nobody has to ask again and again.
Task<Result<void>> wait(Context& context, http::Request& request, http::ResponseWriter& writer) {
  std::string wanted(request.query.get("status").value_or("running"));
  ATOLL_CO_TRY(check_status(wanted));
  ATOLL_CO_ASSIGN(uint64_t limit, number(request, "timeoutMs", 30'000));
  auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(std::min(limit, kMaxWaitMs));
  auto& events = context.manager.events();
  auto listener = std::make_shared<sandbox::Listener>(events);
  writer.on_closed([listener] { listener->wake(); });
  for (;;) {
    int64_t seen = events.newest();
    ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
    std::string_view status = to_string(sandbox->record.status);
    if (status == wanted) co_return co_await reply(context, *sandbox, writer);
    if (status == "failed") {
      co_return fail(ErrorCode::InvalidState, "the sandbox failed: " + sandbox->record.reason);
    }
    auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0 || writer.peer_closed()) {
      co_return fail(ErrorCode::Timeout, "the sandbox is still " + std::string(status));
    }
    co_await listener->wait(seen, left);
  }
}

Task<Result<void>> driver(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  json::object body = driver_json(context);
  body["isolation"] = isolation_json(context);
  co_return co_await writer.send_json(json::serialize(body));
}

}  // namespace

void add_sandbox_routes(ControlRoutes& routes) {
  routes.add(Access::Write, "POST", "/v1/sandboxes", create);
  routes.add(Access::Read, "GET", "/v1/sandboxes", list);
  routes.add(Access::Read, "GET", "/v1/sandboxes/{id}", get);
  routes.add(Access::Write, "PATCH", "/v1/sandboxes/{id}", update);
  routes.add(Access::Write, "DELETE", "/v1/sandboxes/{id}", remove);
  routes.add(Access::Write, "POST", "/v1/sandboxes/{id}/stop", stop);
  routes.add(Access::Write, "POST", "/v1/sandboxes/{id}/resume", resume);
  routes.add(Access::Write, "POST", "/v1/sandboxes/{id}/pause", pause);
  routes.add(Access::Write, "POST", "/v1/sandboxes/{id}/unpause", resume);
  routes.add(Access::Read, "GET", "/v1/sandboxes/{id}/wait", wait);
  routes.add(Access::Read, "GET", "/v1/sandboxes/{id}/driver", driver);
}

}  // namespace atl::api
