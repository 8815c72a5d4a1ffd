// Output of a process as it comes: SSE for browsers and SDKs, raw bytes for pipes, a WebSocket for
// terminals and everything that also wants to write.
#include <boost/json/serialize.hpp>

#include "api/attach_socket.h"
#include "api/routes.h"
#include "api/shapes.h"
#include "base/json_escape.h"
#include "http/sse.h"

namespace atl::api {
namespace {

namespace json = boost::json;

Result<AttachOptions> attach_options(const http::Request& request, bool follow_by_default) {
  AttachOptions options;
  options.follow = follow_by_default;
  if (request.query.get("follow")) {
    ATOLL_ASSIGN(options.follow, request.query.flag("follow"));
  }
  ATOLL_ASSIGN(options.stdout_offset, number(request, "stdoutOffset", 0));
  ATOLL_ASSIGN(options.stderr_offset, number(request, "stderrOffset", 0));
  return options;
}

std::string event_data(const OutputEvent& event) {
  std::string data = R"({"data":)";
  append_json_string(data, event.data);
  data += ",\"offset\":" + std::to_string(event.offset) +
          ",\"bytes\":" + std::to_string(event.data.size()) + ",\"timestamp\":\"" +
          iso_time(sandbox::wall_clock_ms()) + "\"}";
  return data;
}

std::string lost_data(const OutputEvent& event) {
  return json::serialize(json::object{
      {"stream", name_of(event.stream)}, {"offset", event.offset}, {"bytes", event.lost}});
}

Task<Result<void>> logs(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(int32_t pid, pid_of(request));
  ATOLL_CO_ASSIGN(AttachOptions options, attach_options(request, true));
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_ASSIGN(auto attached, co_await target.session->attach(pid, options));
  std::shared_ptr<ProcessStream> stream = std::move(attached);
  writer.on_closed([stream] { stream->cancel(); });
  http::EventStream events(writer);
  ATOLL_CO_TRY(co_await events.start());
  for (;;) {
    ATOLL_CO_ASSIGN(OutputEvent event, co_await stream->next());
    switch (event.kind) {
      case OutputEvent::Kind::Data:
        ATOLL_CO_TRY(co_await events.send(std::string(name_of(event.stream)), event_data(event)));
        break;
      case OutputEvent::Kind::Lost:
        ATOLL_CO_TRY(co_await events.send("lost", lost_data(event)));
        break;
      case OutputEvent::Kind::Exited:
        ATOLL_CO_TRY(co_await events.send("exit", json::serialize(process_json(event.process))));
        co_return co_await events.finish();
    }
  }
}

Task<Result<void>> output(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(int32_t pid, pid_of(request));
  ATOLL_CO_ASSIGN(AttachOptions options, attach_options(request, true));
  std::string_view which = request.query.get("stream").value_or("stdout");
  if (which != "stdout" && which != "stderr") {
    co_return fail(
        Error(ErrorCode::InvalidArgument, "stream is stdout or stderr").with_field("stream"));
  }
  options.want_stdout = which == "stdout";
  options.want_stderr = which == "stderr";
  ATOLL_CO_ASSIGN(uint64_t offset, number(request, "offset", 0));
  (options.want_stdout ? options.stdout_offset : options.stderr_offset) = offset;
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_ASSIGN(auto attached, co_await target.session->attach(pid, options));
  std::shared_ptr<ProcessStream> stream = std::move(attached);
  writer.on_closed([stream] { stream->cancel(); });
  ATOLL_CO_TRY(co_await writer.start(200, {{"content-type", "application/octet-stream"}}));
  for (;;) {
    ATOLL_CO_ASSIGN(OutputEvent event, co_await stream->next());
    if (event.kind == OutputEvent::Kind::Exited) co_return co_await writer.finish();
    if (event.kind == OutputEvent::Kind::Data) ATOLL_CO_TRY(co_await writer.write(event.data));
  }
}

Task<Result<void>> attach(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(int32_t pid, pid_of(request));
  ATOLL_CO_ASSIGN(AttachOptions options, attach_options(request, true));
  ATOLL_CO_ASSIGN(options.take_input, request.query.flag("resumeInput"));
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_ASSIGN(auto stream, co_await target.session->attach(pid, options));
  ATOLL_CO_ASSIGN(auto socket,
                  co_await writer.upgrade_websocket(websocket_options(context.service.settings)));
  auto bridge = std::make_shared<AttachSocket>(std::move(socket), target.session, pid);
  co_await bridge->run(std::move(stream), options.take_input ? AttachSocket::Greeting::InputOffset
                                                             : AttachSocket::Greeting::None);
  co_return Result<void>();
}

}  // namespace

void add_stream_routes(RuntimeRoutes& routes) {
  routes.add(Access::RuntimeRead, "GET", "/process/{pid}/logs", logs);
  routes.add(Access::RuntimeRead, "GET", "/process/{pid}/output", output);
  routes.add(Access::RuntimeWrite, "GET", "/process/{pid}/attach", attach);
}

}  // namespace atl::api
