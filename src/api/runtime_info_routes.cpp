// What a sandbox's runtime says of itself, code run as it is, and the calls of the SDKs that this
// version knows of but does not have.
#include <boost/json/serialize.hpp>

#include "api/exec_body.h"
#include "api/routes.h"
#include "api/shapes.h"
#include "base/json_escape.h"

namespace atl::api {
namespace {

namespace json = boost::json;

Task<Result<void>> health(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  bool running = sandbox->record.status == sandbox::Status::Running;
  json::object body{{"status", running ? "ok" : "unavailable"},
                    {"sandbox", to_string(sandbox->record.status)},
                    {"timestamp", iso_time(sandbox::wall_clock_ms())}};
  co_return co_await writer.send_json(json::serialize(body), running ? 200 : 503);
}

Task<Result<void>> capabilities(Context& context, http::Request& request,
                                http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  json::object body{{"schema", 1},
                    {"sidecarVersion", context.service.settings.version},
                    {"image", sandbox->record.spec.template_name},
                    {"driver", context.manager.backend().name()},
                    {"isolation", isolation_json(context)},
                    {"exec", true},
                    {"processes", true},
                    {"files", true},
                    {"search", true},
                    {"git", true},
                    {"terminals", true},
                    {"agents", false},
                    {"snapshots", true},
                    {"previews", true}};
  co_return co_await writer.send_json(json::serialize(body));
}

Task<Result<void>> metrics(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_ASSIGN(Usage used, co_await target.sandbox->handle->usage());
  json::object process{{"memoryBytes", used.memory_bytes},
                       {"cpuSeconds", static_cast<double>(used.cpu_us) / 1e6},
                       {"processes", used.pids}};
  co_return co_await writer.send_json(
      json::serialize(json::object{{"process", std::move(process)}}));
}

Result<std::vector<std::string>> interpreter(const std::string& language) {
  if (language == "python" || language == "python3")
    return std::vector<std::string>{"python3", "-c"};
  if (language == "javascript" || language == "node") return std::vector<std::string>{"node", "-e"};
  if (language == "bash" || language == "shell") return std::vector<std::string>{"bash", "-c"};
  return fail(Error(ErrorCode::NotSupported, "languages are python, javascript and bash")
                  .with_field("language"));
}

Task<Result<void>> run_code(Context& context, http::Request& request,
                            http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(std::string code, reader.require_string("code"));
  ATOLL_CO_ASSIGN(auto language, reader.optional_string("language"));
  ATOLL_CO_ASSIGN(auto blocking, reader.optional_bool("blocking"));
  RunOptions run;
  ATOLL_CO_TRY(read_surroundings(reader, run));
  ATOLL_CO_TRY(reader.finish());
  if (!blocking.value_or(true)) {
    co_return fail(Error(ErrorCode::NotSupported, "code is waited for; spawn it as a process")
                       .with_field("blocking"));
  }
  ATOLL_CO_ASSIGN(run.argv, interpreter(language.value_or("python")));
  run.label = code.substr(0, 1024);
  run.argv.push_back(std::move(code));
  ATOLL_CO_TRY(check_argv(run.argv, "code"));
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_ASSIGN(RunResult result, co_await target.session->run(std::move(run)));
  json::object data{{"pid", result.process.pid},
                    {"exitCode", result.process.exit_code},
                    {"stdout", to_valid_utf8(result.stdout_data)},
                    {"stderr", to_valid_utf8(result.stderr_data)},
                    {"timedOut", result.process.timed_out},
                    {"durationMs", result.duration.count() / 1000}};
  co_return co_await writer.send_json(success(std::move(data)));
}

Task<Result<void>> not_built(Context& context, http::Request& request, http::ResponseWriter&) {
  ATOLL_CO_TRY(find_sandbox(context, request));
  co_return fail(ErrorCode::NotSupported, "this server does not have " + request.path + " yet");
}

struct Unbuilt {
  std::string_view method;
  std::string_view pattern;
};
constexpr Unbuilt kUnbuilt[] = {
    {"POST", "/tools/install"},     {"POST", "/tools/use"},      {"GET", "/tools"},
    {"POST", "/tools/run"},         {"POST", "/agents/run"},     {"POST", "/agents/run/stream"},
    {"POST", "/agents/run/cancel"}, {"GET", "/agents"},          {"POST", "/agents/sessions"},
    {"GET", "/agents/sessions"},    {"GET", "/agents/events"},   {"GET", "/permissions/users"},
    {"POST", "/permissions/users"}, {"GET", "/backend/status"},  {"GET", "/backend/capabilities"},
    {"POST", "/snapshots"},         {"POST", "/snapshots/list"}, {"POST", "/snapshots/restore"},
};

}  // namespace

void add_runtime_info_routes(RuntimeRoutes& routes) {
  routes.add(Access::RuntimeRead, "GET", "/health", health);
  routes.add(Access::RuntimeRead, "GET", "/capabilities", capabilities);
  routes.add(Access::RuntimeRead, "GET", "/metrics/json", metrics);
  routes.add(Access::RuntimeWrite, "POST", "/process/run-code", run_code);
  for (const Unbuilt& route : kUnbuilt) {
    routes.add(Access::RuntimeRead, route.method, route.pattern, not_built);
  }
}

}  // namespace atl::api
