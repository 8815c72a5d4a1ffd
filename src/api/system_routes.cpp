#include <unistd.h>
#include <algorithm>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "api/routes.h"
#include "api/shapes.h"
#include "image/template.h"

namespace atl::api {
namespace {

namespace json = boost::json;

Task<Result<void>> health(Context& context, http::Request&, http::ResponseWriter& writer) {
  // Green means that a create would work: the default template must be there.
  ATOLL_CO_TRY(image::load_template(context.service.settings.templates_dir, "base"));
  if (auto trouble = context.manager.pool().trouble("base")) {
    co_return fail(
        Error(ErrorCode::Unavailable, "sandboxes cannot be made: " + trouble->message()));
  }
  co_return co_await writer.send_json(R"({"status":"ok"})");
}

size_t count_visible(const Context& context) {
  const auto& all = context.manager.index().all();
  return static_cast<size_t>(std::count_if(all.begin(), all.end(), [&](const auto& entry) {
    return context.who.caller.may_see(entry.second->record);
  }));
}

Task<Result<void>> system(Context& context, http::Request&, http::ResponseWriter& writer) {
  json::object pool;
  // By name: that there are versions is of no interest here.
  std::map<std::string, size_t> ready;
  for (const auto& [key, size] : context.manager.pool().sizes()) {
    ready[key.substr(0, key.find('@'))] += size;
  }
  for (const auto& [name, size] : ready) pool[name] = size;
  json::array degraded;
  for (const std::string& item : context.manager.backend().degraded()) degraded.emplace_back(item);
  json::object object{{"version", context.service.settings.version},
                      {"backend", context.manager.backend().name()},
                      {"degraded", std::move(degraded)},
                      {"sandboxes", count_visible(context)},
                      {"pool", std::move(pool)}};
  co_return co_await writer.send_json(json::serialize(object));
}

Task<Result<void>> send_storage(Context& context, uint64_t grow_to, http::ResponseWriter& writer) {
  auto answer = co_await context.manager.backend().storage(grow_to);
  if (!answer && answer.error().code() == ErrorCode::InvalidArgument) {
    co_return fail(std::move(answer).error().with_field("sizeBytes"));
  }
  ATOLL_CO_ASSIGN(StorageInfo storage, std::move(answer));
  json::object body{{"sizeBytes", storage.bytes},
                    {"freeBytes", storage.free_bytes},
                    {"hostFreeBytes", storage.host_free_bytes},
                    {"growable", storage.growable},
                    {"copies", storage.lacking.empty()}};
  if (!storage.lacking.empty()) body["lacking"] = storage.lacking;
  co_return co_await writer.send_json(json::serialize(body));
}

Task<Result<void>> storage(Context& context, http::Request&, http::ResponseWriter& writer) {
  co_return co_await send_storage(context, 0, writer);
}

Task<Result<void>> grow_storage(Context& context, http::Request& request,
                                http::ResponseWriter& writer) {
  constexpr int64_t kLeast = int64_t{1} << 30, kMost = int64_t{1} << 60;
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(int64_t size, reader.require_integer("sizeBytes", kLeast, kMost));
  ATOLL_CO_TRY(reader.finish());
  co_return co_await send_storage(context, static_cast<uint64_t>(size), writer);
}

// Sizes that a create may ask for by their numbers; the ceiling is this host's.
Task<Result<void>> shapes(Context& context, http::Request&, http::ResponseWriter& writer) {
  auto shape = [](const char* name, double cores, int memory_mb, int disk_gb) {
    return json::object{
        {"name", name}, {"cpuCores", cores}, {"memoryMB", memory_mb}, {"diskGB", disk_gb}};
  };
  const Limits& usual = context.manager.default_limits();
  json::object body{
      {"presets", json::array{shape("small", 0.5, 512, 2), shape("medium", 1, 2048, 8),
                              shape("large", 2, 8192, 20)}},
      {"default", json::object{{"cpuCores", usual.cpu_millis / 1000.0},
                               {"memoryMB", usual.memory_bytes >> 20},
                               {"diskGB", usual.disk_bytes >> 30}}},
      {"ceiling", json::object{{"cpuCores", sysconf(_SC_NPROCESSORS_ONLN)},
                               {"memoryMB", (sysconf(_SC_PHYS_PAGES) / 256)}}}};
  co_return co_await writer.send_json(json::serialize(body));
}

Task<Result<void>> drivers(Context& context, http::Request&, http::ResponseWriter& writer) {
  json::object driver = driver_json(context);
  driver["isolation"] = isolation_json(context);
  co_return co_await writer.send_json(
      json::serialize(json::object{{"drivers", json::array{std::move(driver)}}}));
}

// Who the server takes the caller for.
Task<Result<void>> whoami(Context& context, http::Request&, http::ResponseWriter& writer) {
  const Principal& who = context.who;
  json::object body{{"actor", who.actor},
                    {"tenant", who.caller.owner.tenant},
                    {"role", auth::to_string(who.role)},
                    {"allTenants", who.caller.all_tenants}};
  co_return co_await writer.send_json(json::serialize(body));
}

}  // namespace

void add_system_routes(ControlRoutes& routes) {
  routes.add(Access::Open, "GET", "/health", health);
  routes.add(Access::Read, "GET", "/v1/system", system);
  routes.add(Access::Admin, "GET", "/v1/system/storage", storage);
  routes.add(Access::Admin, "PATCH", "/v1/system/storage", grow_storage);
  routes.add(Access::Read, "GET", "/v1/shapes", shapes);
  routes.add(Access::Read, "GET", "/v1/drivers", drivers);
  routes.add(Access::Read, "GET", "/v1/whoami", whoami);
}

}  // namespace atl::api
