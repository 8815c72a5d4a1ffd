// Pauses, resumes, forks and snapshots.
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "api/e2b/create_body.h"
#include "api/e2b/lifetime.h"
#include "api/e2b/routes.h"
#include "api/e2b/shapes.h"
#include "api/sandbox_body.h"
#include "base/base64url.h"

namespace atl::api::e2b {
namespace {

namespace json = boost::json;
using http::JsonObjectReader;

constexpr size_t kMaxBody = 64u << 10;
constexpr int64_t kMaxForks = 100;
constexpr uint64_t kMaxPage = 1000;

Task<Result<void>> pause_sandbox(Context& context, http::Request& request,
                                 http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, kMaxBody));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(auto memory, reader.optional_bool("memory"));
  ATOLL_CO_TRY(reader.optional_bool("requireHealthyGuest"));  // no other is ever paused
  ATOLL_CO_TRY(reader.finish());
  if (is_paused(sandbox->record)) {
    co_return fail(ErrorCode::Conflict, "the sandbox is already paused");
  }
  ATOLL_CO_TRY(co_await pause(context, sandbox, memory.value_or(true)));
  co_return co_await writer.send(http::Response::empty());
}

struct Connect {
  uint32_t timeout = kDefaultTimeoutSeconds;
  bool cold = false;  // what was in memory is to be given up
};

Task<Result<Connect>> read_connect(http::Request& request, uint32_t default_timeout) {
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, kMaxBody));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(auto timeout, reader.optional_integer("timeout", 0, kMaxTimeoutSeconds));
  ATOLL_CO_ASSIGN(auto memory, reader.optional_bool("memory"));
  ATOLL_CO_TRY(reader.optional_bool("autoPause"));  // of old clients; the create has decided
  ATOLL_CO_TRY(reader.finish());
  co_return Connect{.timeout = static_cast<uint32_t>(timeout.value_or(default_timeout)),
                    .cold = memory.has_value() && !*memory};
}

// A frozen one that is to lose its memory is stopped first.
Task<Result<bool>> carry_out(Context& context, const sandbox::SandboxPtr& sandbox,
                             const Connect& order) {
  if (order.cold && sandbox->record.status == sandbox::Status::Paused) {
    ATOLL_CO_TRY(co_await context.manager.stop(
        sandbox, {sandbox::EndCause::Request, "its memory was given up by request"}));
  }
  co_return co_await resume(context, sandbox, order.timeout);
}

Task<Result<void>> connect(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(Connect order, co_await read_connect(request, kDefaultTimeoutSeconds));
  ATOLL_CO_ASSIGN(bool slept, co_await carry_out(context, sandbox, order));
  co_return co_await writer.send_json(json::serialize(created_json(context, sandbox->record)),
                                      slept ? 201 : 200);
}

Task<Result<void>> resume_sandbox(Context& context, http::Request& request,
                                  http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(Connect order, co_await read_connect(request, kTimeoutOfFirstVersion));
  if (!is_paused(sandbox->record)) {
    co_return fail(ErrorCode::Conflict, "the sandbox is already running");
  }
  ATOLL_CO_TRY(co_await carry_out(context, sandbox, order));
  co_return co_await writer.send_json(json::serialize(created_json(context, sandbox->record)), 201);
}

Task<Result<void>> fork(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, kMaxBody));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(auto count, reader.optional_integer("count", 1, kMaxForks));
  ATOLL_CO_ASSIGN(auto timeout, reader.optional_integer("timeout", 0, kMaxTimeoutSeconds));
  ATOLL_CO_TRY(reader.finish());
  sandbox::Spec spec = copied_spec(sandbox->record.spec);
  spec.max_lifetime_s =
      std::max<uint32_t>(1, static_cast<uint32_t>(timeout.value_or(kDefaultTimeoutSeconds)));
  std::vector<sandbox::Spec> specs(static_cast<size_t>(count.value_or(1)), spec);
  ATOLL_CO_ASSIGN(auto copies,
                  co_await context.manager.fork(sandbox, context.who.caller, std::move(specs)));
  json::array results;
  for (const auto& copy : copies) {
    results.push_back(json::object{{"sandbox", created_json(context, copy->record)}});
    context.made += (context.made.empty() ? "" : " ") + copy->record.id;
  }
  co_return co_await writer.send_json(json::serialize(results), 201);
}

Task<Result<void>> take_snapshot(Context& context, http::Request& request,
                                 http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, kMaxBody));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(auto name, reader.optional_string("name"));
  ATOLL_CO_ASSIGN(auto memory, reader.optional_bool("memory"));
  ATOLL_CO_TRY(reader.finish());
  if (memory.value_or(false)) {
    co_return fail(Error(ErrorCode::NotSupported,
                         "'memory' is not supported by this server: a snapshot has the files")
                       .with_field("memory"));
  }
  sandbox::SnapshotInput input;
  if (name) {
    std::string tag = name->substr(0, name->find(':'));
    if (tag.empty() || tag.size() > 128) {
      co_return fail(
          Error(ErrorCode::InvalidArgument, "a name has 1 to 128 bytes").with_field("name"));
    }
    input.tags.push_back(std::move(tag));
  }
  ATOLL_CO_ASSIGN(auto snapshot, co_await context.manager.take_snapshot(sandbox, std::move(input)));
  context.made = snapshot->id;
  co_return co_await writer.send_json(json::serialize(snapshot_json(*snapshot)), 201);
}

bool has_name(const sandbox::Snapshot& snapshot, std::string_view name) {
  name = name.substr(0, name.find(':'));
  return std::find(snapshot.tags.begin(), snapshot.tags.end(), name) != snapshot.tags.end();
}

Task<Result<void>> list_snapshots(Context& context, http::Request& request,
                                  http::ResponseWriter& writer) {
  std::string of(request.query.get("sandboxID").value_or(""));
  auto name = request.query.get("name");
  ATOLL_CO_ASSIGN(uint64_t limit, number(request, "limit", 100));
  limit = std::clamp<uint64_t>(limit, 1, kMaxPage);
  auto token = base64url_decode(request.query.get("nextToken").value_or(""));
  bool passed = !token || token->empty();
  json::array items;
  http::Response response;
  std::string last;
  for (const auto& snapshot : context.manager.snapshots().list(context.who.caller, of)) {
    if (snapshot->automatic || (name && !has_name(*snapshot, *name))) continue;
    if (!passed) {
      passed = snapshot->id == *token;
      continue;
    }
    if (items.size() == limit) {
      response.headers.add("X-Next-Token", base64url_encode(last));
      break;
    }
    items.push_back(snapshot_json(*snapshot));
    last = snapshot->id;
  }
  response.headers.set("Content-Type", "application/json");
  response.body = json::serialize(items);
  co_return co_await writer.send(std::move(response));
}

}  // namespace

void add_states(ControlRoutes& routes) {
  routes.add(Access::Write, "POST", "/sandboxes/{id}/pause", pause_sandbox);
  routes.add(Access::Write, "POST", "/sandboxes/{id}/resume", resume_sandbox);
  routes.add(Access::Write, "POST", "/sandboxes/{id}/connect", connect);
  routes.add(Access::Write, "POST", "/v2/sandboxes/{id}/connect", connect);
  routes.add(Access::Write, "POST", "/sandboxes/{id}/fork", fork);
  routes.add(Access::Write, "POST", "/sandboxes/{id}/snapshots", take_snapshot);
  routes.add(Access::Read, "GET", "/snapshots", list_snapshots);
}

}  // namespace atl::api::e2b
