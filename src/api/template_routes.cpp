// Templates: what there is, where they come from, and how they go.
#include <boost/asio/this_coro.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "api/long_run.h"
#include "api/routes.h"
#include "api/template_shapes.h"
#include "http/json.h"

namespace atl::api {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

Task<Result<void>> list(Context& context, http::Request& request, const char* key,
                        http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(bool all, request.query.flag("all"));
  auto found = all ? image::list_template_versions(templates_dir(context.service))
                   : image::list_templates(templates_dir(context.service));
  if (!found) co_return fail(std::move(found).error());
  json::array items;
  for (const image::Template& item : *found) items.push_back(template_json(context.service, item));
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
                  image::load_template(templates_dir(context.service), request.param("template")));
  co_return co_await writer.send_json(json::serialize(template_json(context.service, item)));
}

Task<Result<void>> remove(Context& context, http::Request& request, http::ResponseWriter& writer) {
  const std::string& reference = request.param("template");
  ATOLL_CO_ASSIGN(auto going, image::select_templates(templates_dir(context.service), reference));
  for (const image::Template& item : going) {
    size_t users = context.manager.users_of_template(item.key());
    if (users == 0) continue;
    co_return fail(ErrorCode::Conflict, std::to_string(users) + " sandboxes are made from " +
                                            item.key() + "; delete them first");
  }
  ATOLL_CO_TRY(image::remove_template(templates_dir(context.service), reference));
  for (const image::Template& item : going) {
    ATOLL_CO_TRY(co_await context.manager.template_removed(item.key()));
  }
  co_return co_await writer.send_json(R"({"success":true})");
}

Task<Result<void>> tag(Context& context, http::Request& request, http::ResponseWriter& writer) {
  const std::string& reference = request.param("template");
  ATOLL_CO_TRY(
      image::tag_template(templates_dir(context.service), reference, request.param("tag")));
  co_return co_await show(context, request, writer);
}

std::string progress_json(const TemplateProgress& now) {
  return json::serialize(json::object{{"phase", now.phase},
                                      {"layer", now.layer},
                                      {"layers", now.layers},
                                      {"bytes", now.bytes},
                                      {"total", now.total}});
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
  ATOLL_CO_ASSIGN(input.upload, co_await receive_archive(context, request));
  co_return input;
}

Task<Result<ImportInput>> read_input(Context& context, http::Request& request, bool& streamed) {
  std::string type(request.headers.get("content-type").value_or("application/json"));
  if (!type.starts_with("application/json")) co_return co_await receive_upload(context, request);
  ATOLL_CO_ASSIGN(http::JsonDocument document, co_await read_json(request));
  co_return read_import(document, streamed);
}

Task<Result<void>> import(Context& context, http::Request& request, http::ResponseWriter& writer) {
  bool streamed = wants_events(request);
  ATOLL_CO_ASSIGN(ImportInput input, co_await read_input(context, request, streamed));
  auto work = [&service = context.service, input](LongRun& run) -> Task<Result<std::string>> {
    ImportInput imported = input;
    imported.progress = [&run](const TemplateProgress& now) {
      run.tell_state("progress", progress_json(now));
    };
    ATOLL_CO_ASSIGN(ImportedTemplate made,
                    co_await service.manager.backend().import_template(std::move(imported)));
    co_return result_json(service, made);
  };
  auto run = LongRun::start(co_await asio::this_coro::executor, std::move(work));
  co_return co_await run->answer(writer, streamed);
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
