// What happens, as server-sent events: of one sandbox, or of all that the caller may see.
#include <charconv>

#include "api/routes.h"
#include "api/shapes.h"
#include "base/json_escape.h"
#include "http/sse.h"

namespace atl::api {
namespace {

constexpr size_t kPage = 256;
constexpr std::chrono::seconds kHeartbeat{15};

// The id after which to go on, where the client names one.
Result<std::optional<int64_t>> resume_point(const http::Request& request) {
  auto text = request.headers.get("last-event-id");
  if (!text) text = request.query.get("lastEventId");
  if (!text || text->empty()) return std::nullopt;
  int64_t id = 0;
  auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), id);
  if (error == std::errc() && end == text->data() + text->size() && id >= 0) return id;
  return fail(
      Error(ErrorCode::InvalidArgument, "an event id is a whole number").with_field("lastEventId"));
}

// {"at":...,"sandboxId":...} and the event's own members.
std::string event_text(const sandbox::Event& event) {
  std::string text = R"({"at":")" + iso_time(event.at_ms) + "\"";
  if (event.data.find("\"sandboxId\"") == event.data.npos) {
    text += ",\"sandboxId\":";
    append_json_string(text, event.sandbox);
  }
  std::string_view own = event.data;
  if (own.size() > 2)
    text.append(",").append(own.substr(1));
  else
    text += "}";
  return text;
}

struct Filter {
  sandbox::Caller caller;
  std::string sandbox;  // empty: all

  bool wants(const sandbox::Event& event) const {
    if (!caller.all_tenants && event.tenant != caller.owner.tenant) return false;
    return sandbox.empty() || event.sandbox == sandbox;
  }
};

struct Position {
  int64_t seq = 0;
  bool follow = true;
  bool fresh = false;  // the client does not know it yet
};

Task<Result<void>> stream(sandbox::EventLog& log, Filter filter, Position position,
                          http::ResponseWriter& writer) {
  http::EventStream out(writer);
  ATOLL_CO_TRY(co_await out.start());
  // A heartbeat's id is where to go on, also for a client that has not heard of anything yet.
  if (position.fresh) {
    ATOLL_CO_TRY(co_await out.send("heartbeat", "{}", std::to_string(position.seq)));
  }
  auto listener = std::make_shared<sandbox::Listener>(log);
  writer.on_closed([listener] { listener->wake(); });
  while (!writer.peer_closed()) {
    ATOLL_CO_ASSIGN(auto events, co_await log.after(position.seq, filter.sandbox, kPage));
    for (const sandbox::Event& event : events) {
      position.seq = event.seq;
      if (!filter.wants(event)) continue;
      ATOLL_CO_TRY(co_await out.send(event.type, event_text(event), std::to_string(event.seq)));
    }
    if (!events.empty()) continue;
    if (!position.follow) co_return co_await out.finish();
    bool more = co_await listener->wait(position.seq, kHeartbeat);
    if (log.stopped()) co_return co_await out.finish();
    if (more || writer.peer_closed()) continue;
    ATOLL_CO_TRY(co_await out.send("heartbeat", "{}", std::to_string(position.seq)));
  }
  co_return Result<void>();
}

Result<bool> follows(const http::Request& request) {
  if (!request.query.get("follow")) return true;
  return request.query.flag("follow");
}

// From the first that is still known: a client that has just created it misses nothing.
Task<Result<void>> of_sandbox(Context& context, http::Request& request,
                              http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(std::string id,
                  context.manager.known_id(context.who.caller, request.param("id")));
  ATOLL_CO_ASSIGN(auto after, resume_point(request));
  ATOLL_CO_ASSIGN(bool follow, follows(request));
  Filter filter{.caller = context.who.caller, .sandbox = std::move(id)};
  co_return co_await stream(context.manager.events(), std::move(filter),
                            {.seq = after.value_or(0), .follow = follow}, writer);
}

// From now on, unless the client has been here before.
Task<Result<void>> of_all(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto after, resume_point(request));
  ATOLL_CO_ASSIGN(bool follow, follows(request));
  int64_t from = after.value_or(follow ? context.manager.events().newest() : 0);
  Filter filter{.caller = context.who.caller, .sandbox = {}};
  co_return co_await stream(context.manager.events(), std::move(filter),
                            {.seq = from, .follow = follow, .fresh = follow && !after}, writer);
}

}  // namespace

void add_event_routes(ControlRoutes& routes) {
  routes.add(Access::Read, "GET", "/v1/sandboxes/{id}/events", of_sandbox);
  routes.add(Access::Read, "GET", "/v1/events", of_all);
}

}  // namespace atl::api
