// Templates: those of the server, and snapshots, which E2B treats as templates too.
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "api/e2b/create_body.h"
#include "api/e2b/routes.h"
#include "api/e2b/shapes.h"
#include "image/template.h"

namespace atl::api::e2b {
namespace {

namespace json = boost::json;

json::object template_json(const Context& context, const image::Template& item) {
  Limits limits = item.defaults.limits;
  const Limits& usual = context.manager.default_limits();
  if (limits.cpu_millis == 0) limits.cpu_millis = usual.cpu_millis;
  if (limits.memory_bytes == 0) limits.memory_bytes = usual.memory_bytes;
  if (limits.disk_bytes == 0) limits.disk_bytes = usual.disk_bytes;
  return {{"templateID", item.name},
          {"buildID", item.key()},
          {"cpuCount", std::max<uint32_t>(1, (limits.cpu_millis + 999) / 1000)},
          {"memoryMB", limits.memory_bytes >> 20},
          {"diskSizeMB", limits.disk_bytes >> 20},
          {"public", true},
          {"aliases", json::array{item.name}},
          {"names", json::array{item.name}},
          {"createdAt", item.created_at},
          {"updatedAt", item.created_at},
          {"createdBy", nullptr},
          {"lastSpawnedAt", nullptr},
          {"spawnCount", context.manager.users_of_template(item.key())},
          {"buildCount", item.version},
          {"envdVersion", kDaemonVersion},
          {"buildStatus", "ready"}};
}

Task<Result<void>> list(Context& context, http::Request&, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto found, image::list_templates(context.service.settings.templates_dir));
  json::array items;
  for (const image::Template& item : found) items.push_back(template_json(context, item));
  co_return co_await writer.send_json(json::serialize(items));
}

Task<Result<void>> alias(Context& context, http::Request& request, http::ResponseWriter& writer) {
  const std::string& name = request.param("alias");
  json::object body{{"templateID", name}, {"public", true}};
  if (auto snapshot = find_snapshot(context, name)) {
    body = {{"templateID", snapshot->id}, {"public", false}};
  } else {
    ATOLL_CO_TRY(image::load_template(context.service.settings.templates_dir, name));
  }
  co_return co_await writer.send_json(json::serialize(body));
}

// A snapshot is its owner's to delete; a template belongs to the installation.
Task<Result<void>> remove(Context& context, http::Request& request, http::ResponseWriter& writer) {
  const std::string& name = request.param("template");
  if (auto snapshot = find_snapshot(context, name)) {
    ATOLL_CO_TRY(co_await context.manager.remove_snapshot(snapshot));
    co_return co_await writer.send(http::Response::empty());
  }
  ATOLL_CO_TRY(image::load_template(context.service.settings.templates_dir, name));
  co_return fail(ErrorCode::PermissionDenied,
                 "'" + name +
                     "' is a template of the server: an administrator removes it with "
                     "DELETE /v1/templates/" +
                     name);
}

Task<Result<void>> refuse_build(Context&, http::Request&, http::ResponseWriter&) {
  co_return fail(
      Error(ErrorCode::NotSupported,
            "builds of the first two versions are not supported; build with a newer client")
          .with_field("steps"));
}

Task<Result<void>> refuse_tags(Context&, http::Request&, http::ResponseWriter&) {
  co_return fail(Error(ErrorCode::NotSupported,
                       "templates are tagged with PUT /v1/templates/{template}/tags/{tag}")
                     .with_field("tags"));
}

}  // namespace

void add_templates(ControlRoutes& routes) {
  routes.add(Access::Read, "GET", "/templates", list);
  routes.add(Access::Read, "GET", "/v2/templates", list);
  routes.add(Access::Read, "GET", "/templates/aliases/{alias}", alias);
  routes.add(Access::Write, "DELETE", "/templates/{template}", remove);
  for (const char* path : {"/templates", "/v2/templates"}) {
    routes.add(Access::Write, "POST", path, refuse_build);
  }
  routes.add(Access::Write, "POST", "/templates/tags", refuse_tags);
  routes.add(Access::Write, "DELETE", "/templates/tags", refuse_tags);
  routes.add(Access::Read, "GET", "/templates/{template}/tags", refuse_tags);
}

}  // namespace atl::api::e2b
