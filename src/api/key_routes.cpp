// API keys, for administrators.
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "api/routes.h"
#include "api/shapes.h"

namespace atl::api {
namespace {

namespace json = boost::json;

json::object quota_json(const auth::Quota& quota) {
  return {{"sandboxes", quota.sandboxes},
          {"cpuCores", plain_number(quota.cpu_millis / 1000.0)},
          {"memoryMB", quota.memory_bytes >> 20},
          {"diskGB", plain_number(static_cast<double>(quota.disk_bytes) / (1u << 30))}};
}

json::object key_json(Context& context, const auth::ApiKey& key) {
  json::object object{{"id", key.id},
                      {"tenant", key.tenant},
                      {"name", key.name},
                      {"role", auth::to_string(key.role)},
                      {"quota", quota_json(key.quota)},
                      {"used", quota_json(context.manager.index().used(key.id))},
                      {"ratePerSecond", key.rate_per_s},
                      {"createdAt", iso_time(key.created_at_ms)}};
  if (key.expires_at_ms != 0) object["expiresAt"] = iso_time(key.expires_at_ms);
  return object;
}

Result<auth::Quota> read_quota(http::JsonObjectReader& reader) {
  auth::Quota quota;
  ATOLL_ASSIGN(auto object, reader.optional_object("quota"));
  if (!object) return quota;
  ATOLL_ASSIGN(auto sandboxes, object->optional_integer("sandboxes", 0, 1'000'000));
  ATOLL_ASSIGN(auto cores, object->optional_number("cpuCores"));
  ATOLL_ASSIGN(auto memory, object->optional_integer("memoryMB", 0, 1 << 30));
  ATOLL_ASSIGN(auto disk, object->optional_integer("diskGB", 0, 1 << 20));
  ATOLL_TRY(object->finish());
  if (cores && !(*cores >= 0 && *cores <= 1e6)) {
    return fail(Error(ErrorCode::InvalidArgument, "cpuCores must be 0 (no limit) to 1000000")
                    .with_field("quota.cpuCores"));
  }
  quota.sandboxes = static_cast<uint32_t>(sandboxes.value_or(0));
  quota.cpu_millis = static_cast<uint32_t>(cores.value_or(0) * 1000);
  quota.memory_bytes = static_cast<uint64_t>(memory.value_or(0)) << 20;
  quota.disk_bytes = static_cast<uint64_t>(disk.value_or(0)) << 30;
  return quota;
}

Result<auth::KeyRequest> read_request(const Context& context, const http::JsonDocument& document) {
  ATOLL_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader reader(*object);
  auth::KeyRequest request;
  ATOLL_ASSIGN(request.name, reader.require_string("name"));
  ATOLL_ASSIGN(auto tenant, reader.optional_string("tenant"));
  ATOLL_ASSIGN(auto role, reader.optional_string("role"));
  ATOLL_ASSIGN(request.quota, read_quota(reader));
  ATOLL_ASSIGN(auto rate, reader.optional_integer("ratePerSecond", 0, 1'000'000));
  ATOLL_ASSIGN(auto lifetime, reader.optional_integer("expiresInSeconds", 1, 315'360'000));
  ATOLL_TRY(reader.finish());
  request.tenant = tenant.value_or(context.who.caller.owner.tenant);
  auto known = auth::parse_role(role.value_or("member"));
  if (!known) {
    return fail(Error(ErrorCode::InvalidArgument, "a role is admin, member or read-only")
                    .with_field("role"));
  }
  request.role = *known;
  request.rate_per_s = static_cast<uint32_t>(rate.value_or(0));
  if (lifetime) request.expires_at_ms = sandbox::wall_clock_ms() + *lifetime * 1000;
  return request;
}

Task<Result<void>> create(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, 64u << 10));
  ATOLL_CO_ASSIGN(auto wanted, read_request(context, document));
  ATOLL_CO_ASSIGN(auto minted,
                  co_await context.service.keys.create(wanted, sandbox::wall_clock_ms()));
  json::object body = key_json(context, minted.key);
  body["key"] = minted.text;
  context.made = minted.key.id;
  co_return co_await writer.send_json(json::serialize(body), 201);
}

Task<Result<void>> list(Context& context, http::Request&, http::ResponseWriter& writer) {
  const sandbox::Caller& caller = context.who.caller;
  json::array keys;
  for (const auto& key : context.service.keys.list(caller.all_tenants ? "" : caller.owner.tenant)) {
    keys.push_back(key_json(context, *key));
  }
  co_return co_await writer.send_json(json::serialize(json::object{{"keys", std::move(keys)}}));
}

Task<Result<void>> remove(Context& context, http::Request& request, http::ResponseWriter& writer) {
  const sandbox::Caller& caller = context.who.caller;
  std::string tenant = caller.all_tenants ? "" : caller.owner.tenant;
  ATOLL_CO_TRY(co_await context.service.keys.remove(tenant, request.param("id")));
  co_return co_await writer.send_json(std::string(kSuccess));
}

}  // namespace

void add_key_routes(ControlRoutes& routes) {
  routes.add(Access::Admin, "POST", "/v1/keys", create);
  routes.add(Access::Admin, "GET", "/v1/keys", list);
  routes.add(Access::Admin, "DELETE", "/v1/keys/{id}", remove);
}

}  // namespace atl::api
