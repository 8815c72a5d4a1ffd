// What has happened to a sandbox, from the events that the server keeps.
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "api/e2b/routes.h"
#include "base/iso_time.h"

namespace atl::api::e2b {
namespace {

namespace json = boost::json;

constexpr size_t kMaxEvents = 1000;

struct LogQuery {
  int64_t from_ms = 0;
  size_t limit = kMaxEvents;
  bool backward = false;
};

Task<Result<std::vector<sandbox::Event>>> events_of(Context& context, const std::string& id,
                                                    const LogQuery& query) {
  std::vector<sandbox::Event> own;
  int64_t seen = 0;
  for (;;) {
    ATOLL_CO_ASSIGN(auto batch, co_await context.manager.events().after(seen, id, kMaxEvents));
    if (batch.empty()) break;
    seen = batch.back().seq;
    for (auto& event : batch) {
      if (event.sandbox == id && event.at_ms >= query.from_ms) own.push_back(std::move(event));
    }
  }
  if (query.backward) std::reverse(own.begin(), own.end());
  if (own.size() > query.limit) own.resize(query.limit);
  co_return own;
}

std::string_view level_of(const std::string& type) {
  return type == "sandbox.failed" ? "error" : "info";
}

json::object fields_of(const sandbox::Event& event) {
  return {{"event", event.type}, {"data", event.data}};
}

Task<Result<std::vector<sandbox::Event>>> asked_events(Context& context, http::Request& request,
                                                       std::string_view from) {
  ATOLL_CO_ASSIGN(std::string id,
                  context.manager.known_id(context.who.caller, request.param("id")));
  LogQuery query;
  ATOLL_CO_ASSIGN(uint64_t since, number(request, from, 0));
  ATOLL_CO_ASSIGN(uint64_t limit, number(request, "limit", kMaxEvents));
  query.from_ms = static_cast<int64_t>(std::min<uint64_t>(since, INT64_MAX));
  query.limit = std::clamp<uint64_t>(limit, 1, kMaxEvents);
  query.backward = request.query.get("direction") == "backward";
  co_return co_await events_of(context, id, query);
}

Task<Result<void>> first(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto events, co_await asked_events(context, request, "start"));
  json::array lines, entries;
  for (const auto& event : events) {
    lines.push_back(json::object{{"timestamp", iso_time(event.at_ms)},
                                 {"line", event.type + " " + event.data}});
    entries.push_back(json::object{{"timestamp", iso_time(event.at_ms)},
                                   {"message", event.type},
                                   {"level", level_of(event.type)},
                                   {"fields", fields_of(event)}});
  }
  json::object body{{"logs", std::move(lines)}, {"logEntries", std::move(entries)}};
  co_return co_await writer.send_json(json::serialize(body));
}

Task<Result<void>> second(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto events, co_await asked_events(context, request, "cursor"));
  json::array entries;
  for (const auto& event : events) {
    entries.push_back(json::object{{"timestamp", iso_time(event.at_ms)},
                                   {"message", event.type},
                                   {"level", level_of(event.type)},
                                   {"fields", fields_of(event)}});
  }
  co_return co_await writer.send_json(json::serialize(json::object{{"logs", std::move(entries)}}));
}

}  // namespace

void add_logs(ControlRoutes& routes) {
  routes.add(Access::Read, "GET", "/sandboxes/{id}/logs", first);
  routes.add(Access::Read, "GET", "/v2/sandboxes/{id}/logs", second);
}

}  // namespace atl::api::e2b
