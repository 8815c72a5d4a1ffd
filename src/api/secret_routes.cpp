// A tenant's secrets. Their values go in and never come out.
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "api/routes.h"
#include "api/shapes.h"

namespace atl::api {
namespace {

namespace json = boost::json;
using account::SecretInfo;
using Mode = account::Secrets::Mode;

json::object secret_json(const SecretInfo& info) {
  return {{"name", info.name},
          {"createdAt", iso_time(info.created_at_ms)},
          {"updatedAt", iso_time(info.updated_at_ms)}};
}

const std::string& tenant_of(const Context& context) { return context.who.caller.owner.tenant; }

struct Body {
  std::optional<std::string> name;
  std::string value;
};

Task<Result<Body>> read_body(http::Request& request) {
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, 256u << 10));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader reader(*object);
  Body body;
  ATOLL_CO_ASSIGN(body.name, reader.optional_string("name"));
  ATOLL_CO_ASSIGN(body.value, reader.require_string("value"));
  ATOLL_CO_TRY(reader.finish());
  co_return body;
}

// A changed secret holds for every running sandbox before anybody is told that it was changed.
Task<Result<void>> put(Context& context, std::string name, std::string value, Mode mode,
                       http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(SecretInfo info, co_await context.service.secrets.put(
                                       tenant_of(context), std::move(name), std::move(value), mode,
                                       sandbox::wall_clock_ms()));
  co_await context.manager.secret_changed(info.tenant, info.name);
  co_return co_await writer.send_json(json::serialize(secret_json(info)),
                                      mode == Mode::Create ? 201 : 200);
}

Task<Result<void>> create(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(Body body, co_await read_body(request));
  if (!body.name) {
    co_return fail(Error(ErrorCode::InvalidArgument, "give the secret's name").with_field("name"));
  }
  co_return co_await put(context, *body.name, std::move(body.value), Mode::Create, writer);
}

Task<Result<void>> update_with(Context& context, http::Request& request, Mode mode,
                               http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(Body body, co_await read_body(request));
  std::string name = request.param("name");
  if (body.name && *body.name != name) {
    co_return fail(
        Error(ErrorCode::InvalidArgument, "a secret cannot be renamed").with_field("name"));
  }
  co_return co_await put(context, std::move(name), std::move(body.value), mode, writer);
}

Task<Result<void>> update(Context& context, http::Request& request, http::ResponseWriter& writer) {
  return update_with(context, request, Mode::Update, writer);
}

Task<Result<void>> set(Context& context, http::Request& request, http::ResponseWriter& writer) {
  return update_with(context, request, Mode::Either, writer);
}

Task<Result<void>> list(Context& context, http::Request&, http::ResponseWriter& writer) {
  json::array secrets;
  for (const SecretInfo& info : context.service.secrets.list(tenant_of(context))) {
    secrets.push_back(secret_json(info));
  }
  co_return co_await writer.send_json(
      json::serialize(json::object{{"secrets", std::move(secrets)}}));
}

Task<Result<void>> get(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(SecretInfo info,
                  context.service.secrets.info(tenant_of(context), request.param("name")));
  co_return co_await writer.send_json(json::serialize(secret_json(info)));
}

Task<Result<void>> remove(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_TRY(co_await context.service.secrets.remove(tenant_of(context), request.param("name")));
  co_await context.manager.secret_changed(tenant_of(context), request.param("name"));
  co_return co_await writer.send_json(std::string(kSuccess));
}

}  // namespace

void add_secret_routes(ControlRoutes& routes) {
  routes.add(Access::Write, "POST", "/v1/secrets", create);
  routes.add(Access::Read, "GET", "/v1/secrets", list);
  routes.add(Access::Read, "GET", "/v1/secrets/{name}", get);
  routes.add(Access::Write, "PATCH", "/v1/secrets/{name}", update);
  routes.add(Access::Write, "PUT", "/v1/secrets/{name}", set);
  routes.add(Access::Write, "DELETE", "/v1/secrets/{name}", remove);
}

}  // namespace atl::api
