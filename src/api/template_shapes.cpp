#include "api/template_shapes.h"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "api/shapes.h"
#include "egress/policy_json.h"

namespace atl::api {

namespace json = boost::json;

static json::object defaults_json(const image::TemplateDefaults& defaults) {
  json::object env;
  for (const auto& [name, value] : defaults.env) env[name] = value;
  json::object object{{"env", std::move(env)}};
  if (!defaults.workdir.empty()) object["workdir"] = defaults.workdir;
  if (!defaults.user.empty()) object["user"] = defaults.user;
  if (!defaults.network.empty()) {
    auto policy = egress::parse_policy(defaults.network);
    if (policy) object["network"] = egress::to_json(*policy, egress::Values::Redacted);
  }
  if (defaults.limits != Limits()) object["resources"] = resources_json(defaults.limits);
  if (!defaults.entrypoint.empty()) {
    object["entrypoint"] = json::array(defaults.entrypoint.begin(), defaults.entrypoint.end());
  }
  if (!defaults.cmd.empty()) object["cmd"] = json::array(defaults.cmd.begin(), defaults.cmd.end());
  return object;
}

json::object template_json(const Service& service, const image::Template& item) {
  json::object object{{"name", item.name},
                      {"version", item.version},
                      {"createdAt", item.created_at},
                      {"digest", item.digest},
                      {"layers", item.layers.size()},
                      {"sizeBytes", item.bytes},
                      {"inUse", service.manager.users_of_template(item.key())},
                      {"tags", json::array(item.tags.begin(), item.tags.end())},
                      {"defaults", defaults_json(item.defaults)}};
  if (!item.source.empty()) object["source"] = item.source;
  return object;
}

const std::string& templates_dir(const Service& service) { return service.settings.templates_dir; }

Result<std::string> result_json(const Service& service, const ImportedTemplate& made) {
  ATOLL_ASSIGN(image::Template item, image::load_template(templates_dir(service), made.key));
  json::object object = template_json(service, item);
  object["reused"] = made.reused;
  object["reusedLayers"] = made.reused_layers;
  object["unpackedFiles"] = made.entries;
  object["unpackedBytes"] = made.bytes;
  return json::serialize(object);
}

Task<Result<std::shared_ptr<TemplateUpload>>> receive_archive(Context& context,
                                                              http::Request& request) {
  constexpr size_t kChunk = 256u << 10;
  ATOLL_CO_ASSIGN(auto upload, co_await context.manager.backend().start_upload());
  for (;;) {
    std::string block(kChunk, '\0');
    ATOLL_CO_ASSIGN(size_t size, co_await request.body->read(block));
    if (size == 0) co_return upload;
    block.resize(size);
    ATOLL_CO_TRY(co_await upload->write(std::move(block)));
  }
}

}  // namespace atl::api
