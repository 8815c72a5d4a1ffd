// Templates: what there is, where they come from, and how they go.
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "api/routes.h"
#include "api/shapes.h"
#include "http/sse.h"
#include "http/status.h"
#include "image/template.h"

namespace atl::api {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr size_t kChunk = 256u << 10;
constexpr std::chrono::seconds kHeartbeat{15};

json::object defaults_json(const image::TemplateDefaults& defaults) {
  json::object env;
  for (const auto& [name, value] : defaults.env) env[name] = value;
  json::object object{{"env", std::move(env)}};
  if (!defaults.workdir.empty()) object["workdir"] = defaults.workdir;
  if (!defaults.user.empty()) object["user"] = defaults.user;
  if (!defaults.entrypoint.empty()) {
    object["entrypoint"] = json::array(defaults.entrypoint.begin(), defaults.entrypoint.end());
  }
  if (!defaults.cmd.empty()) object["cmd"] = json::array(defaults.cmd.begin(), defaults.cmd.end());
  return object;
}

json::object template_json(Context& context, const image::Template& item) {
  json::object object{{"name", item.name},
                      {"version", item.version},
                      {"createdAt", item.created_at},
                      {"digest", item.digest},
                      {"layers", item.layers.size()},
                      {"sizeBytes", item.bytes},
                      {"inUse", context.manager.users_of_template(item.key())},
                      {"tags", json::array(item.tags.begin(), item.tags.end())},
                      {"defaults", defaults_json(item.defaults)}};
  if (!item.source.empty()) object["source"] = item.source;
  return object;
}

const std::string& templates_dir(Context& context) {
  return context.service.settings.templates_dir;
}

Task<Result<void>> list(Context& context, http::Request& request, const char* key,
                        http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(bool all, request.query.flag("all"));
  auto found = all ? image::list_template_versions(templates_dir(context))
                   : image::list_templates(templates_dir(context));
  if (!found) co_return fail(std::move(found).error());
  json::array items;
  for (const image::Template& item : *found) items.push_back(template_json(context, item));
  co_return co_await writer.send_json(json::serialize(json::object{{key, std::move(items)}}));
}

Task<Result<void>> templates(Context& context, http::Request& request,
                             http::ResponseWriter& writer) {
  return list(context, request, "templates", writer);
}

// What the SDKs call a template.
Task<Result<void>> environments(Context& context, http::Request& request,
                                http::ResponseWriter& writer) {
  return list(context, request, "environments", writer);
}

Task<Result<void>> show(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(image::Template item,
                  image::load_template(templates_dir(context), request.param("template")));
  co_return co_await writer.send_json(json::serialize(template_json(context, item)));
}

Task<Result<void>> remove(Context& context, http::Request& request, http::ResponseWriter& writer) {
  const std::string& reference = request.param("template");
  ATOLL_CO_ASSIGN(auto going, image::select_templates(templates_dir(context), reference));
  for (const image::Template& item : going) {
    size_t users = context.manager.users_of_template(item.key());
    if (users == 0) continue;
    co_return fail(ErrorCode::Conflict, std::to_string(users) + " sandboxes are made from " +
                                            item.key() + "; delete them first");
  }
  ATOLL_CO_TRY(image::remove_template(templates_dir(context), reference));
  for (const image::Template& item : going) {
    ATOLL_CO_TRY(co_await context.manager.template_removed(item.key()));
  }
  co_return co_await writer.send_json(R"({"success":true})");
}

Task<Result<void>> tag(Context& context, http::Request& request, http::ResponseWriter& writer) {
  const std::string& reference = request.param("template");
  ATOLL_CO_TRY(image::tag_template(templates_dir(context), reference, request.param("tag")));
  co_return co_await show(context, request, writer);
}

// An import, and who listens to it: it goes on when they have gone.
struct Run {
  explicit Run(const asio::any_io_executor& executor) : changed(executor) {}
  std::optional<TemplateProgress> news;
  std::optional<Result<ImportedTemplate>> result;
  asio::steady_timer changed;
};

std::string progress_json(const TemplateProgress& now) {
  return json::serialize(json::object{{"phase", now.phase},
                                      {"layer", now.layer},
                                      {"layers", now.layers},
                                      {"bytes", now.bytes},
                                      {"total", now.total}});
}

Result<std::string> result_json(Context& context, const ImportedTemplate& made) {
  ATOLL_ASSIGN(image::Template item, image::load_template(templates_dir(context), made.key));
  json::object object = template_json(context, item);
  object["reused"] = made.reused;
  object["reusedLayers"] = made.reused_layers;
  object["unpackedFiles"] = made.entries;
  object["unpackedBytes"] = made.bytes;
  return json::serialize(object);
}

std::shared_ptr<Run> start_import(Context& context, const asio::any_io_executor& executor,
                                  ImportInput input) {
  auto run = std::make_shared<Run>(executor);
  input.progress = [run](const TemplateProgress& now) {
    run->news = now;
    run->changed.cancel();
  };
  auto work = [run, &backend = context.manager.backend(),
               input = std::move(input)]() mutable -> Task<void> {
    run->result = co_await backend.import_template(std::move(input));
    run->changed.cancel();
  };
  asio::co_spawn(executor, std::move(work), asio::detached);
  return run;
}

// Until something has changed or the time is up.
Task<void> wait(Run& run) {
  if (run.news || run.result) co_return;
  run.changed.expires_after(kHeartbeat);
  (void)co_await run.changed.async_wait(asio::as_tuple(asio::use_awaitable));
}

Task<Result<void>> stream(Context& context, Run& run, http::ResponseWriter& writer) {
  http::EventStream out(writer);
  ATOLL_CO_TRY(co_await out.start());
  while (!run.result) {
    co_await wait(run);
    if (run.news) {
      ATOLL_CO_TRY(co_await out.send("progress", progress_json(*std::exchange(run.news, {}))));
    } else if (!run.result) {
      ATOLL_CO_TRY(co_await out.heartbeat());
    }
  }
  Result<std::string> made =
      *run.result ? result_json(context, **run.result) : fail(run.result->error());
  if (made) {
    ATOLL_CO_TRY(co_await out.send("complete", *made));
  } else {
    json::object error{{"code", http::wire_code(made.error().code())},
                       {"message", made.error().message()}};
    ATOLL_CO_TRY(co_await out.send("error", json::serialize(error)));
  }
  co_return co_await out.finish();
}

Result<ImportInput> read_import(const http::JsonDocument& document, bool& streamed) {
  ATOLL_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader reader(*object);
  ImportInput input;
  ATOLL_ASSIGN(input.name, reader.require_string("name"));
  ATOLL_ASSIGN(input.source, reader.require_string("source"));
  ATOLL_ASSIGN(auto tag, reader.optional_string("tag"));
  ATOLL_ASSIGN(auto user, reader.optional_string("user"));
  ATOLL_ASSIGN(auto password, reader.optional_string("password"));
  ATOLL_ASSIGN(auto insecure, reader.optional_bool("insecure"));
  ATOLL_ASSIGN(auto wants_stream, reader.optional_bool("stream"));
  ATOLL_TRY(reader.finish());
  input.tag = tag.value_or("");
  input.user = user.value_or("");
  input.password = password.value_or("");
  input.insecure = insecure.value_or(false);
  streamed = streamed || wants_stream.value_or(false);
  return input;
}

// The archive is the body, and its name in the query.
Task<Result<ImportInput>> receive_upload(Context& context, http::Request& request) {
  ImportInput input;
  ATOLL_CO_ASSIGN(input.name, request.query.require("name"));
  ATOLL_CO_TRY(image::parse_template_reference(input.name));
  input.tag = request.query.get("tag").value_or("");
  input.source = "upload";
  ATOLL_CO_ASSIGN(input.upload, co_await context.manager.backend().start_upload());
  for (;;) {
    std::string block(kChunk, '\0');
    ATOLL_CO_ASSIGN(size_t size, co_await request.body->read(block));
    if (size == 0) co_return input;
    block.resize(size);
    ATOLL_CO_TRY(co_await input.upload->write(std::move(block)));
  }
}

Task<Result<ImportInput>> read_input(Context& context, http::Request& request, bool& streamed) {
  std::string type(request.headers.get("content-type").value_or("application/json"));
  if (!type.starts_with("application/json")) co_return co_await receive_upload(context, request);
  ATOLL_CO_ASSIGN(http::JsonDocument document, co_await read_json(request));
  co_return read_import(document, streamed);
}

Task<Result<void>> import(Context& context, http::Request& request, http::ResponseWriter& writer) {
  auto accept = request.headers.get("accept");
  bool streamed = accept && accept->find("text/event-stream") != accept->npos;
  ATOLL_CO_ASSIGN(ImportInput input, co_await read_input(context, request, streamed));
  auto executor = co_await asio::this_coro::executor;
  auto run = start_import(context, executor, std::move(input));
  if (streamed) co_return co_await stream(context, *run, writer);
  while (!run->result) {
    run->news.reset();
    co_await wait(*run);
  }
  if (!*run->result) co_return fail(run->result->error());
  ATOLL_CO_ASSIGN(std::string made, result_json(context, **run->result));
  co_return co_await writer.send_json(std::move(made), 201);
}

}  // namespace

void add_template_routes(ControlRoutes& routes) {
  routes.add(Access::Read, "GET", "/v1/templates", templates);
  routes.add(Access::Read, "GET", "/v1/environments", environments);
  routes.add(Access::Admin, "POST", "/v1/templates/import", import);
  routes.add(Access::Read, "GET", "/v1/templates/{template}", show);
  routes.add(Access::Admin, "DELETE", "/v1/templates/{template}", remove);
  routes.add(Access::Admin, "PUT", "/v1/templates/{template}/tags/{tag}", tag);
}

}  // namespace atl::api
