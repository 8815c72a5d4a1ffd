#include <signal.h>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "api/exec_body.h"
#include "api/routes.h"
#include "api/shapes.h"
#include "async/with_deadline.h"

namespace atl::api {
namespace {

namespace json = boost::json;

Task<Result<void>> spawn(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request));
  ATOLL_CO_ASSIGN(const auto* object, document.object());
  http::JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(RunOptions run, read_run_options(reader));
  SpawnOptions options;
  static_cast<RunOptions&>(options) = std::move(run);
  ATOLL_CO_ASSIGN(auto stdin_open, reader.optional_bool("stdin"));
  ATOLL_CO_ASSIGN(auto pty, reader.optional_bool("pty"));
  ATOLL_CO_ASSIGN(auto cols, reader.optional_integer("cols", 1, 10000));
  ATOLL_CO_ASSIGN(auto rows, reader.optional_integer("rows", 1, 10000));
  ATOLL_CO_ASSIGN(auto blocking, reader.optional_bool("blocking"));
  ATOLL_CO_TRY(reader.finish());
  if (blocking.value_or(false)) {
    co_return fail(Error(ErrorCode::NotSupported, "spawn does not wait; run the command instead")
                       .with_field("blocking"));
  }
  options.stdin_open = stdin_open.value_or(false);
  options.pty = pty.value_or(false);
  options.cols = static_cast<uint16_t>(cols.value_or(80));
  options.rows = static_cast<uint16_t>(rows.value_or(24));
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_TRY(co_await keep_point(context, target, options));
  ATOLL_CO_ASSIGN(ProcessInfo process, co_await target.session->spawn(std::move(options)));
  co_return co_await writer.send_json(success(process_json(process)));
}

Task<Result<void>> list(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_ASSIGN(auto processes, co_await target.session->processes());
  json::array items;
  for (const ProcessInfo& process : processes) items.push_back(process_json(process));
  co_return co_await writer.send_json(success(std::move(items)));
}

Task<Result<void>> get(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(int32_t pid, pid_of(request));
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_ASSIGN(ProcessInfo process, co_await target.session->process(pid));
  co_return co_await writer.send_json(success(process_json(process)));
}

Task<Result<void>> wait(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(int32_t pid, pid_of(request));
  ATOLL_CO_ASSIGN(uint64_t limit, number(request, "timeoutMs", 60'000));
  limit = std::min<uint64_t>(limit, 600'000);
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_ASSIGN(
      ProcessInfo process,
      co_await async::with_deadline(target.session->wait(pid), std::chrono::milliseconds(limit),
                                    "the process still runs; ask again"));
  co_return co_await writer.send_json(success(process_json(process)));
}

Result<int> signal_from(const json::value* value) {
  if (value == nullptr) return SIGKILL;
  if (value->is_string()) return parse_signal(std::string_view(value->as_string()));
  if (value->is_int64()) return parse_signal(std::to_string(value->as_int64()));
  return fail(
      Error(ErrorCode::InvalidArgument, "signal is a name or a number").with_field("signal"));
}

Task<Result<void>> kill(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(int32_t pid, pid_of(request));
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, 64u << 10));
  ATOLL_CO_ASSIGN(const auto* object, document.object());
  http::JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(int signal, signal_from(reader.any("signal")));
  ATOLL_CO_ASSIGN(auto tree, reader.optional_bool("tree"));
  ATOLL_CO_TRY(reader.finish());
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_TRY(co_await target.session->signal(pid, signal, tree.value_or(true)));
  co_return co_await writer.send_json(std::string(kSuccess));
}

}  // namespace

void add_process_routes(RuntimeRoutes& routes) {
  routes.add(Access::RuntimeWrite, "POST", "/process/spawn", spawn);
  routes.add(Access::RuntimeRead, "GET", "/process", list);
  routes.add(Access::RuntimeRead, "GET", "/process/{pid}", get);
  routes.add(Access::RuntimeRead, "GET", "/process/{pid}/wait", wait);
  routes.add(Access::RuntimeWrite, "DELETE", "/process/{pid}", kill);
}

}  // namespace atl::api
