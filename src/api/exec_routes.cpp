#include <charconv>

#include "api/exec_body.h"
#include "api/routes.h"
#include "base/json_escape.h"

namespace atl::api {
namespace {

// Output is in memory as it is and as an answer, where it may be longer.
constexpr size_t kCopies = 4;

void append_number(std::string& out, std::string_view key, int64_t value) {
  char digits[24];
  auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(",\"").append(key).append("\":").append(digits, end);
}

// Written by hand: this is the answer on the path that is measured in microseconds.
std::string run_json(const RunResult& result) {
  std::string out;
  out.reserve(256 + result.stdout_data.size() + result.stderr_data.size());
  out.append(R"({"success":true,"result":{"stdout":)");
  append_json_string(out, result.stdout_data);
  out.append(R"(,"stderr":)");
  append_json_string(out, result.stderr_data);
  append_number(out, "exitCode", result.process.exit_code);
  append_number(out, "exitSignal", result.process.exit_signal);
  append_number(out, "stdoutLost", static_cast<int64_t>(result.stdout_lost));
  append_number(out, "stderrLost", static_cast<int64_t>(result.stderr_lost));
  append_number(out, "duration", result.duration.count() / 1000);
  append_number(out, "durationMicroseconds", result.duration.count());
  append_number(out, "pid", result.process.pid);
  out.append(result.process.timed_out ? R"(,"timedOut":true}})" : R"(,"timedOut":false}})");
  return out;
}

Task<Result<void>> run_command(Context& context, http::Request& request,
                               http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request));
  ATOLL_CO_ASSIGN(const auto* object, document.object());
  http::JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(RunOptions options, read_run_options(reader));
  ATOLL_CO_TRY(reader.finish());
  options.admit_output = [&request](uint64_t bytes) {
    return request.memory.take(kCopies * static_cast<size_t>(bytes)).has_value();
  };
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_TRY(co_await keep_point(context, target, options));
  ATOLL_CO_ASSIGN(RunResult result, co_await target.session->run(std::move(options)));
  co_return co_await writer.send_json(run_json(result));
}

}  // namespace

void add_exec_routes(RuntimeRoutes& routes) {
  routes.add(Access::RuntimeWrite, "POST", "/terminals/commands", run_command);
}

}  // namespace atl::api
