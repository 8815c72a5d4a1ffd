// Templates that are made here: from a base with files and a script, or from a snapshot.
#include <boost/asio/this_coro.hpp>
#include <boost/json/serialize.hpp>

#include "api/file_path.h"
#include "api/long_run.h"
#include "api/routes.h"
#include "api/sandbox_body.h"
#include "api/template_shapes.h"
#include "base/json_escape.h"
#include "base/random_id.h"
#include "http/base64.h"
#include "sandbox/template_build.h"

namespace atl::api {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr size_t kMaxBuildBody = 64u << 20;

Result<void> check_template_name(const std::string& name) {
  if (is_valid_id(name)) return {};
  return fail(Error(ErrorCode::InvalidArgument, "a template's name is 1 to 64 of a-z, 0-9 and '-'")
                  .with_field("name"));
}

Result<void> read_seed(http::JsonObjectReader& reader, sandbox::TemplateBuild& build) {
  ATOLL_ASSIGN(std::string path, reader.require_string("path"));
  ATOLL_ASSIGN(auto content, reader.optional_string("content"));
  ATOLL_ASSIGN(auto archive, reader.optional_string("archive"));
  ATOLL_TRY(reader.finish());
  ATOLL_TRY(check_path(path, "seed.path"));
  if (content.has_value() == archive.has_value()) {
    return fail(Error(ErrorCode::InvalidArgument, "give either content or archive")
                    .with_field("seed.content"));
  }
  if (content) {
    build.files.push_back({std::move(path), std::move(*content)});
    return {};
  }
  auto bytes = http::base64_decode(*archive);
  if (!bytes) {
    return fail(
        Error(ErrorCode::InvalidArgument, "a tar archive, in base64").with_field("seed.archive"));
  }
  build.trees.push_back({std::move(path), std::move(*bytes)});
  return {};
}

Result<sandbox::TemplateBuild> read_build(http::JsonObjectReader& reader) {
  sandbox::TemplateBuild build;
  ATOLL_ASSIGN(auto base, reader.optional_string("from"));
  ATOLL_ASSIGN(auto seeds, reader.object_array("seed"));
  ATOLL_ASSIGN(auto script, reader.optional_string("bootstrap"));
  ATOLL_ASSIGN(auto seconds, reader.optional_integer("timeoutSeconds", 1, 86400));
  for (http::JsonObjectReader& seed : seeds) ATOLL_TRY(read_seed(seed, build));
  build.base = base.value_or("base");
  build.script = script.value_or("");
  build.time = std::chrono::seconds(seconds.value_or(0));
  return build;
}

Task<Result<PrewarmResult>> publish_snapshot(Service& service, std::string name,
                                             sandbox::SnapshotPtr snapshot,
                                             TemplateSettings settings) {
  PublishInput input{.template_key = std::move(name),
                     .state = snapshot->id,
                     .metadata = snapshot->source.backend_state,
                     .source = snapshot->id,
                     .settings = std::move(settings)};
  co_return co_await service.manager.backend().publish_state(std::move(input));
}

// What has been made, with the answer's fields for it.
using Making = std::function<Task<Result<PrewarmResult>>(LongRun&)>;

Task<Result<void>> make(Context& context, http::ResponseWriter& writer, bool streamed,
                        Making making) {
  auto work = [&service = context.service,
               making = std::move(making)](LongRun& run) -> Task<Result<std::string>> {
    ATOLL_CO_ASSIGN(PrewarmResult made, co_await making(run));
    co_return result_json(service, {.key = made.key, .reused = made.reused});
  };
  auto run = LongRun::start(co_await asio::this_coro::executor, std::move(work));
  co_return co_await run->answer(writer, streamed);
}

// From a base with files and a script, or from a snapshot.
Task<Result<void>> create(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, kMaxBuildBody));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(std::string name, reader.require_string("name"));
  ATOLL_CO_TRY(check_template_name(name));
  ATOLL_CO_ASSIGN(auto wants_stream, reader.optional_bool("stream"));
  bool streamed = wants_events(request) || wants_stream.value_or(false);
  TemplateSettings settings;
  ATOLL_CO_TRY(read_settings(reader, settings));
  ATOLL_CO_ASSIGN(auto from_snapshot, reader.optional_string("snapshot"));
  context.made = name;
  Service& service = context.service;
  if (from_snapshot) {
    ATOLL_CO_TRY(reader.finish());
    ATOLL_CO_ASSIGN(auto snapshot,
                    context.manager.find_snapshot(context.who.caller, *from_snapshot));
    co_return co_await make(context, writer, streamed,
                            [&service, name, snapshot, settings](LongRun&) {
                              return publish_snapshot(service, name, snapshot, settings);
                            });
  }
  ATOLL_CO_ASSIGN(sandbox::TemplateBuild build, read_build(reader));
  ATOLL_CO_TRY(reader.finish());
  build.name = name;
  build.settings = std::move(settings);
  co_return co_await make(context, writer, streamed, [&service, build](LongRun& run) {
    auto log = [&run](const std::string& text) {
      run.tell("log", json::serialize(json::object{{"text", to_valid_utf8(text)}}));
    };
    return sandbox::build_template(service.manager.backend(), build, log);
  });
}

// A new version with other settings, on the same layers.
Task<Result<void>> update(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(image::Template item,
                  image::load_template(templates_dir(context.service), request.param("template")));
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader reader(*object);
  TemplateSettings before = item.defaults;
  ATOLL_CO_TRY(read_settings(reader, item.defaults));
  ATOLL_CO_TRY(reader.finish());
  if (before != item.defaults) {
    item.created_at = image::now_rfc3339();
    ATOLL_CO_ASSIGN(item.version, image::save_template(templates_dir(context.service), item));
  }
  co_return co_await writer.send_json(json::serialize(template_json(context.service, item)));
}

}  // namespace

void add_template_build_routes(ControlRoutes& routes) {
  routes.add(Access::Admin, "POST", "/v1/templates", create);
  routes.add(Access::Admin, "PATCH", "/v1/templates/{template}", update);
}

}  // namespace atl::api
