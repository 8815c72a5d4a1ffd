// Builds of templates from steps.
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "api/e2b/builds.h"
#include "api/e2b/credentials.h"
#include "api/e2b/routes.h"
#include "auth/digest.h"
#include "base/iso_time.h"
#include "base/json_escape.h"
#include "http/target.h"
#include "image/template.h"

namespace atl::api::e2b {
namespace {

namespace json = boost::json;

constexpr size_t kMaxBody = 4u << 20;
constexpr size_t kLinesPerAnswer = 100;  // clients ask again until none come

Task<Result<void>> request_build(Builds& builds, Context& context, http::Request& request,
                                 http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, kMaxBody));
  ATOLL_CO_ASSIGN(BuildOrder order, read_order(document));
  if (image::load_template(context.service.settings.templates_dir, order.name)) {
    co_return fail(Error(ErrorCode::Conflict, "the server has a template '" + order.name +
                                                  "' of its own; choose another name")
                       .with_field("name"));
  }
  ATOLL_CO_ASSIGN(auto build, builds.add(context.who.caller, std::move(order)));
  context.made = build->id;
  json::array tags(build->order.tags.begin(), build->order.tags.end());
  json::object body{{"templateID", build->order.name},
                    {"buildID", build->id},
                    {"public", false},
                    {"names", json::array{build->order.name}},
                    {"aliases", json::array{build->order.name}},
                    {"tags", std::move(tags)}};
  co_return co_await writer.send_json(json::serialize(body), 202);
}

// The link is a signed one to a file in the sandbox where files of builds wait.
Task<Result<void>> upload_link(Builds& builds, Context& context, http::Request& request,
                               http::ResponseWriter& writer) {
  const std::string& hash = request.param("hash");
  if (hash.size() != 64 || !auth::is_lower_hex(hash)) {
    co_return fail(Error(ErrorCode::InvalidArgument, "this is no SHA-256").with_field("hash"));
  }
  if (builds.newest(context.who.caller, request.param("template")) == nullptr) {
    co_return fail(ErrorCode::NotFound, "no build of '" + request.param("template") + "' waits");
  }
  ATOLL_CO_ASSIGN(auto store, co_await builds.store(context));
  ATOLL_CO_ASSIGN(auto session, co_await context.manager.session(store));
  std::string path = Builds::place_of(hash);
  ATOLL_CO_ASSIGN(bool present, co_await session->exists(path));
  const sandbox::Record& record = store->record;
  std::string signature = sign({.path = path, .operation = "write", .user = "", .expiration = ""},
                               context.service.tokens.runtime_token(record.id, record.generation));
  std::string url = context.service.settings.base_url +
                    "/files?path=" + http::percent_encode(path) +
                    "&signature=" + http::percent_encode(signature);
  json::object body{{"present", present}, {"url", url}};
  co_return co_await writer.send_json(json::serialize(body), 201);
}

Task<Result<void>> start(Builds& builds, Context& context, http::Request& request,
                         http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto build, builds.find(context.who.caller, request.param("template"),
                                          request.param("build")));
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, kMaxBody));
  ATOLL_CO_ASSIGN(BuildPlan plan, read_plan(document));
  ATOLL_CO_TRY(co_await builds.start(context, build, std::move(plan)));
  co_return co_await writer.send(http::Response::empty(202));
}

json::object line_json(const BuildLine& line) {
  json::object object{{"timestamp", iso_time(line.at_ms)},
                      {"level", line.level},
                      {"message", to_valid_utf8(line.text)}};
  if (!line.step.empty()) object["step"] = line.step;
  return object;
}

Task<Result<void>> status(Builds& builds, Context& context, http::Request& request,
                          http::ResponseWriter& writer) {
  static constexpr std::string_view kNames[] = {"waiting", "building", "ready", "error"};
  ATOLL_CO_ASSIGN(auto build, builds.find(context.who.caller, request.param("template"),
                                          request.param("build")));
  ATOLL_CO_ASSIGN(uint64_t offset, number(request, "logsOffset", 0));
  json::array lines;
  for (size_t at = offset; at < build->lines.size() && lines.size() < kLinesPerAnswer; at++) {
    lines.push_back(line_json(build->lines[at]));
  }
  json::object body{{"templateID", build->order.name},
                    {"buildID", build->id},
                    {"status", kNames[static_cast<size_t>(build->status)]},
                    {"logs", json::array()},
                    {"logEntries", std::move(lines)}};
  if (build->status == Build::Status::Error) {
    json::object reason{{"message", to_valid_utf8(build->reason)}};
    if (!build->failed_step.empty()) reason["step"] = build->failed_step;
    body["reason"] = std::move(reason);
  }
  co_return co_await writer.send_json(json::serialize(body));
}

}  // namespace

void add_builds(ControlRoutes& routes) {
  using Handler = Task<Result<void>> (*)(Builds&, Context&, http::Request&, http::ResponseWriter&);
  auto builds = std::make_shared<Builds>();
  auto with = [builds](Handler handler) -> Action {
    return
        [builds, handler](Context& context, http::Request& request, http::ResponseWriter& writer) {
          return handler(*builds, context, request, writer);
        };
  };
  routes.add(Access::Write, "POST", "/v3/templates", with(request_build));
  routes.add(Access::Write, "GET", "/templates/{template}/files/{hash}", with(upload_link));
  routes.add(Access::Write, "POST", "/v2/templates/{template}/builds/{build}", with(start));
  routes.add(Access::Read, "GET", "/templates/{template}/builds/{build}/status", with(status));
}

}  // namespace atl::api::e2b
