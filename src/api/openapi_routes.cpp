// docs/api/openapi.yaml, which travels inside the program as JSON (cmake/openapi.cmake).
#include "api/routes.h"

extern "C" const char atoll_openapi_begin[];
extern "C" const char atoll_openapi_end[];

namespace atl::api {
namespace {

Task<Result<void>> openapi(Context&, http::Request&, http::ResponseWriter& writer) {
  co_return co_await writer.send_json(std::string(openapi_json()));
}

}  // namespace

std::string_view openapi_json() {
  return {atoll_openapi_begin, static_cast<size_t>(atoll_openapi_end - atoll_openapi_begin)};
}

void add_openapi_route(ControlRoutes& routes) {
  routes.add(Access::Open, "GET", "/openapi.json", openapi);
}

}  // namespace atl::api
