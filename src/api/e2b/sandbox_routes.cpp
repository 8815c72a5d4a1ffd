// Sandboxes: made, found, kept alive, ended.
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "api/e2b/create_body.h"
#include "api/e2b/lifetime.h"
#include "api/e2b/list_query.h"
#include "api/e2b/network_body.h"
#include "api/e2b/routes.h"
#include "api/e2b/shapes.h"

namespace atl::api::e2b {
namespace {

namespace json = boost::json;

constexpr size_t kMaxBody = 1u << 20;

Task<Result<void>> create(Context& context, http::Request& request, http::ResponseWriter& writer,
                          uint32_t default_timeout) {
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, kMaxBody));
  ATOLL_CO_ASSIGN(CreateOrder order, read_create(context, request, document, default_timeout));
  const sandbox::Caller& caller = context.who.caller;
  auto made =
      order.snapshot != nullptr
          ? co_await context.manager.create_from(caller, order.snapshot, std::move(order.spec))
          : co_await context.manager.create(caller, std::move(order.spec));
  if (!made) co_return fail(std::move(made).error());
  context.made = (*made)->record.id;
  co_return co_await writer.send_json(json::serialize(created_json(context, (*made)->record)), 201);
}

Task<Result<void>> create_first(Context& context, http::Request& request,
                                http::ResponseWriter& writer) {
  return create(context, request, writer, kTimeoutOfFirstVersion);
}

Task<Result<void>> create_second(Context& context, http::Request& request,
                                 http::ResponseWriter& writer) {
  return create(context, request, writer, kDefaultTimeoutSeconds);
}

// The first version knows no pages and, where nobody says, no paused ones.
Task<Result<void>> list_first(Context& context, http::Request& request,
                              http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(ListQuery query, read_list_query(request));
  if (query.states.empty()) query.states = {"running"};
  json::array items;
  for (const auto& found : matching(context, query)) items.push_back(listed_json(found->record));
  co_return co_await writer.send_json(json::serialize(items));
}

Task<Result<void>> list_second(Context& context, http::Request& request,
                               http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(ListQuery query, read_list_query(request));
  auto found = matching(context, query);
  auto running = std::count_if(found.begin(), found.end(),
                               [](const auto& one) { return !is_paused(one->record); });
  auto [page, next] = page_of(found, query);
  json::array items;
  for (const auto& one : page) items.push_back(listed_json(one->record));
  http::Response response = http::Response::json(json::serialize(items));
  response.headers.add("X-Total-Running", std::to_string(running));
  if (!next.empty()) response.headers.add("X-Next-Token", next);
  co_return co_await writer.send(std::move(response));
}

Task<Result<void>> get(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  co_return co_await writer.send_json(json::serialize(detail_json(context, sandbox->record)));
}

Task<Result<void>> remove(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_TRY(
      co_await context.manager.remove(sandbox, {sandbox::EndCause::Request, "killed by request"}));
  co_return co_await writer.send(http::Response::empty());
}

Task<Result<uint32_t>> read_seconds(http::Request& request, std::string_view name,
                                    uint32_t fallback) {
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, kMaxBody));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(auto seconds, reader.optional_integer(name, 0, kMaxTimeoutSeconds));
  ATOLL_CO_TRY(reader.finish());
  co_return static_cast<uint32_t>(seconds.value_or(fallback));
}

Task<Result<void>> timeout(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(uint32_t seconds,
                  co_await read_seconds(request, "timeout", kTimeoutOfFirstVersion));
  ATOLL_CO_TRY(co_await set_timeout(context, sandbox, seconds));
  co_return co_await writer.send(http::Response::empty());
}

Task<Result<void>> refresh(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(uint32_t seconds,
                  co_await read_seconds(request, "duration", kTimeoutOfFirstVersion));
  ATOLL_CO_TRY(co_await set_timeout(context, sandbox, seconds, true));
  co_return co_await writer.send(http::Response::empty());
}

Task<Result<void>> set_network(Context& context, http::Request& request,
                               http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, kMaxBody));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(NetworkWish wish, read_network_update(reader, sandbox->record.spec.ingress));
  ATOLL_CO_TRY(co_await context.manager.set_network(sandbox, std::move(wish.policy),
                                                    std::move(wish.ingress)));
  co_return co_await writer.send(http::Response::empty());
}

}  // namespace

void add_sandboxes(ControlRoutes& routes) {
  routes.add(Access::Write, "POST", "/sandboxes", create_first);
  routes.add(Access::Write, "POST", "/v2/sandboxes", create_second);
  routes.add(Access::Read, "GET", "/sandboxes", list_first);
  routes.add(Access::Read, "GET", "/v2/sandboxes", list_second);
  routes.add(Access::Read, "GET", "/sandboxes/{id}", get);
  routes.add(Access::Write, "DELETE", "/sandboxes/{id}", remove);
  routes.add(Access::Write, "POST", "/sandboxes/{id}/timeout", timeout);
  routes.add(Access::Write, "POST", "/sandboxes/{id}/refreshes", refresh);
  routes.add(Access::Write, "PUT", "/sandboxes/{id}/network", set_network);
}

}  // namespace atl::api::e2b
