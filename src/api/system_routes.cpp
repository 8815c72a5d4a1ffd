#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "api/routes.h"
#include "image/template.h"

namespace atl::api {
namespace {

namespace json = boost::json;

Task<Result<void>> health(Context& context, http::Request&, http::ResponseWriter& writer) {
  // Green means that a create would work: the default template must be there.
  ATOLL_CO_TRY(image::load_template(context.templates_dir, "base"));
  co_return co_await writer.send_json(R"({"status":"ok"})");
}

Task<Result<void>> templates(Context& context, http::Request&, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto all, image::list_templates(context.templates_dir));
  json::array list;
  for (const image::Template& item : all) {
    list.push_back(
        json::object{{"name", item.name}, {"createdAt", item.created_at}, {"digest", item.digest}});
  }
  co_return co_await writer.send_json(
      json::serialize(json::object{{"templates", std::move(list)}}));
}

Task<Result<void>> system(Context& context, http::Request&, http::ResponseWriter& writer) {
  json::object pool;
  for (const auto& [name, size] : context.manager.pool().sizes()) pool[name] = size;
  json::array degraded;
  for (const std::string& item : context.manager.backend().degraded()) degraded.emplace_back(item);
  json::object object{{"version", context.version},
                      {"backend", context.manager.backend().name()},
                      {"degraded", std::move(degraded)},
                      {"sandboxes", context.manager.list().size()},
                      {"pool", std::move(pool)}};
  co_return co_await writer.send_json(json::serialize(object));
}

}  // namespace

void add_system_routes(http::Router& router, Context& context) {
  router.add("GET", "/health", open_to_all(context, health));
  router.add("GET", "/v1/templates", guarded(context, templates));
  router.add("GET", "/v1/system", guarded(context, system));
}

}  // namespace atl::api
