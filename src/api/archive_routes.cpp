// Templates and snapshots as single files, out and in.
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "api/routes.h"
#include "api/shapes.h"
#include "api/template_shapes.h"
#include "base/random_id.h"
#include "image/template_file.h"

namespace atl::api {
namespace {

namespace json = boost::json;

Task<Result<void>> send_archive(Context& context, ExportInput input, std::string name,
                                http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto reader, co_await context.manager.backend().export_archive(std::move(input)));
  http::Headers headers{{"content-type", "application/zstd"},
                        {"content-disposition", "attachment; filename=\"" + name + ".tar.zst\""}};
  ATOLL_CO_TRY(co_await writer.start(200, std::move(headers), reader->size()));
  for (;;) {
    ATOLL_CO_ASSIGN(std::string_view block, co_await reader->read());
    if (block.empty()) co_return co_await writer.finish();
    ATOLL_CO_TRY(co_await writer.write(block));
  }
}

Task<Result<void>> export_template(Context& context, http::Request& request,
                                   http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(image::Template item,
                  image::load_template(templates_dir(context.service), request.param("template")));
  ExportInput input;
  input.template_key = item.key();
  input.note = image::encode_defaults(item.defaults);
  co_return co_await send_archive(context, std::move(input), item.name, writer);
}

// What a sandbox made from it elsewhere has, and how it is listed there.
std::string note_of(const sandbox::Snapshot& snapshot) {
  image::TemplateDefaults defaults;
  const sandbox::Spec& spec = snapshot.source.spec;
  defaults.env = spec.env;
  defaults.user = spec.user;
  defaults.limits = spec.limits;
  json::object note = json::parse(image::encode_defaults(defaults)).as_object();
  note["message"] = snapshot.message;
  note["tags"] = json::array(snapshot.tags.begin(), snapshot.tags.end());
  return json::serialize(note);
}

Task<Result<void>> export_snapshot(Context& context, http::Request& request,
                                   http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto snapshot,
                  context.manager.find_snapshot(context.who.caller, request.param("snapshot")));
  ExportInput input;
  input.state = snapshot->id;
  input.metadata = snapshot->source.backend_state;
  input.note = note_of(*snapshot);
  co_return co_await send_archive(context, std::move(input), snapshot->id, writer);
}

// What the note does not say, or says wrongly, is as usual.
sandbox::SnapshotInput read_note(const std::string& note) {
  sandbox::SnapshotInput input;
  boost::system::error_code error;
  json::value value = json::parse(note, error);
  const json::object* object = error ? nullptr : value.if_object();
  if (object == nullptr) return input;
  if (const json::value* message = object->if_contains("message")) {
    if (message->is_string()) input.message = message->get_string();
  }
  const json::value* tags = object->if_contains("tags");
  if (tags == nullptr || !tags->is_array()) return input;
  for (const json::value& tag : tags->get_array()) {
    if (tag.is_string() && !tag.get_string().empty()) input.tags.emplace_back(tag.get_string());
  }
  return input;
}

Task<Result<void>> import_snapshot(Context& context, http::Request& request,
                                   http::ResponseWriter& writer) {
  ImportInput input;
  input.name = random_id("imported-");
  input.source = "upload";
  ATOLL_CO_ASSIGN(input.upload, co_await receive_archive(context, request));
  std::string name = input.name;
  ATOLL_CO_ASSIGN(ImportedTemplate made,
                  co_await context.manager.backend().import_template(std::move(input)));
  auto snapshot =
      co_await context.manager.import_snapshot(context.who.caller, made.key, read_note(made.note));
  // The snapshot holds its layers; the template was only the way there.
  ATOLL_CO_TRY(image::remove_template(templates_dir(context.service), name));
  ATOLL_CO_TRY(co_await context.manager.template_removed(made.key));
  if (!snapshot) co_return fail(std::move(snapshot).error());
  context.made = (*snapshot)->id;
  co_return co_await writer.send_json(json::serialize(snapshot_json(**snapshot)), 201);
}

}  // namespace

void add_archive_routes(ControlRoutes& routes) {
  routes.add(Access::Admin, "GET", "/v1/templates/{template}/archive", export_template);
  routes.add(Access::Write, "GET", "/v1/snapshots/{snapshot}/archive", export_snapshot);
  routes.add(Access::Admin, "POST", "/v1/snapshots/import", import_snapshot);
}

}  // namespace atl::api
