// envd's process service: commands and terminals, their output as streams of messages.
#include <signal.h>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "api/e2b/call.h"
#include "api/e2b/connect.h"
#include "api/e2b/inputs.h"
#include "api/e2b/process_body.h"
#include "api/e2b/routes.h"
#include "base/json_escape.h"
#include "http/base64.h"

namespace atl::api::e2b {
namespace {

namespace json = boost::json;
using http::JsonObjectReader;

constexpr std::string_view kKeepalive = R"({"event":{"keepalive":{}}})";

std::string start_json(int32_t pid) {
  return R"({"event":{"start":{"pid":)" + std::to_string(pid) + "}}}";
}

std::string data_json(const OutputEvent& event, bool pty) {
  std::string out = R"({"event":{"data":{")";
  out += pty ? "pty" : (event.stream == Stream::Stderr ? "stderr" : "stdout");
  out += R"(":")" + http::base64_encode(event.data) + R"("}}})";
  return out;
}

// Until the process ends or the client goes; the process lives on.
Task<Result<void>> relay(ProcessStream& process, const ProcessInfo& info, MessageStream& messages) {
  for (;;) {
    auto event = co_await process.next();
    if (!event) co_return co_await messages.finish(&event.error());
    if (event->kind == OutputEvent::Kind::Data) {
      ATOLL_CO_TRY(co_await messages.send(data_json(*event, info.pty)));
    }
    if (event->kind != OutputEvent::Kind::Exited) continue;
    if (event->process.timed_out) {
      Error late(ErrorCode::Timeout, "the command ran for longer than its time limit");
      co_return co_await messages.finish(&late);
    }
    ATOLL_CO_TRY(co_await messages.send(end_json(event->process)));
    co_return co_await messages.finish();
  }
}

Task<Result<void>> follow(Call& call, const ProcessInfo& info, const http::Request& request,
                          http::ResponseWriter& writer, AttachOptions options) {
  ATOLL_CO_ASSIGN(auto attached, co_await call.session().attach(info.pid, options));
  std::shared_ptr<ProcessStream> process = std::move(attached);
  writer.on_closed([process] { process->cancel(); });
  auto messages = std::make_shared<MessageStream>(writer, std::string(kKeepalive));
  auto result = co_await messages->start(keepalive_interval(request));
  if (result) result = co_await messages->send(start_json(info.pid));
  if (result) result = co_await relay(*process, info, *messages);
  co_await messages->close();
  co_return result;
}

Task<Result<void>> start(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto document, co_await read_message(request));
  ATOLL_CO_ASSIGN(SpawnOptions options, read_start(document));
  ATOLL_CO_ASSIGN(auto limit, time_limit(request));
  ATOLL_CO_ASSIGN(Call call, co_await open_call(context, request));
  options.timeout = limit.value_or(std::chrono::milliseconds(0));
  options.user = call.user;
  options.cwd = call.resolve(options.cwd);
  ATOLL_CO_TRY(co_await keep_point(context, call.target, options));
  ATOLL_CO_ASSIGN(ProcessInfo info, co_await call.session().spawn(std::move(options)));
  co_return co_await follow(call, info, request, writer, {});
}

// The one that a message selects, as it is now.
Task<Result<ProcessInfo>> selected(Call& call, JsonObjectReader& reader) {
  ATOLL_CO_ASSIGN(int32_t pid, read_selector(reader));
  auto info = co_await call.session().process(pid);
  if (info && info->running) co_return info;
  co_return fail(ErrorCode::NotFound, "process with pid " + std::to_string(pid) + " not found");
}

// What is written from now on: what was before, whoever started it has seen.
Task<Result<void>> connect(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto document, co_await read_message(request));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(Call call, co_await open_call(context, request));
  ATOLL_CO_ASSIGN(ProcessInfo info, co_await selected(call, reader));
  ATOLL_CO_TRY(reader.finish());
  AttachOptions options;
  options.stdout_offset = info.stdout_bytes;
  options.stderr_offset = info.stderr_bytes;
  co_return co_await follow(call, info, request, writer, options);
}

Task<Result<void>> list(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_TRY(co_await read_message(request));
  ATOLL_CO_ASSIGN(Call call, co_await open_call(context, request));
  ATOLL_CO_ASSIGN(auto processes, co_await call.session().processes());
  json::array items;
  for (const ProcessInfo& info : processes) {
    if (info.running) items.push_back(process_json(info));
  }
  co_return co_await writer.send_json(
      json::serialize(json::object{{"processes", std::move(items)}}));
}

Task<Result<void>> send_signal(Context& context, http::Request& request,
                               http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto document, co_await read_message(request));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(Call call, co_await open_call(context, request));
  ATOLL_CO_ASSIGN(ProcessInfo info, co_await selected(call, reader));
  ATOLL_CO_ASSIGN(int signal, read_signal(reader));
  ATOLL_CO_TRY(reader.finish());
  ATOLL_CO_TRY(co_await call.session().signal(info.pid, signal, true));
  co_return co_await writer.send_json("{}");
}

// What goes to a process: input, its end, the size of its terminal.
Task<Result<void>> tell(Inputs& inputs, Context& context, http::Request& request,
                        http::ResponseWriter& writer,
                        Result<ProcessOrder> (*read)(JsonObjectReader&)) {
  ATOLL_CO_ASSIGN(auto document, co_await read_message(request));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(Call call, co_await open_call(context, request));
  ATOLL_CO_ASSIGN(ProcessInfo info, co_await selected(call, reader));
  ATOLL_CO_ASSIGN(ProcessOrder order, read(reader));
  ATOLL_CO_TRY(reader.finish());
  ATOLL_CO_TRY(co_await inputs.give(call.target, info, std::move(order)));
  co_return co_await writer.send_json("{}");
}

// The first message says whose input the others are.
Task<Result<void>> stream_input(Inputs& inputs, Context& context, http::Request& request,
                                http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(Call call, co_await open_call(context, request));
  EnvelopeReader messages(request);
  std::optional<ProcessInfo> info;
  for (;;) {
    ATOLL_CO_ASSIGN(auto message, co_await messages.next());
    if (!message) break;
    ATOLL_CO_ASSIGN(auto document, http::JsonDocument::parse(*message, message->size() + 1));
    ATOLL_CO_ASSIGN(const json::object* object, document.object());
    JsonObjectReader reader(*object);
    ATOLL_CO_ASSIGN(auto begin, reader.optional_object("start"));
    ATOLL_CO_ASSIGN(auto data, reader.optional_object("data"));
    ATOLL_CO_TRY(reader.optional_object("keepalive"));
    ATOLL_CO_TRY(reader.finish());
    if (begin) {
      ATOLL_CO_ASSIGN(info, co_await selected(call, *begin));
    }
    if (!data) continue;
    if (!info) co_return fail(ErrorCode::InvalidArgument, "input before it is said whose it is");
    ATOLL_CO_ASSIGN(ProcessOrder order, read_input(*data));
    ATOLL_CO_TRY(co_await inputs.give(call.target, *info, std::move(order)));
  }
  http::Response response;
  response.headers.set("Content-Type", "application/connect+json");
  response.body = envelope("{}") + end_envelope(nullptr);
  co_return co_await writer.send(std::move(response));
}

}  // namespace

void add_process_calls(ControlRoutes& routes) {
  auto inputs = std::make_shared<Inputs>();
  auto telling = [inputs](Result<ProcessOrder> (*read)(JsonObjectReader&)) -> Action {
    return [inputs, read](Context& context, http::Request& request, http::ResponseWriter& writer) {
      return tell(*inputs, context, request, writer, read);
    };
  };
  auto streaming = [inputs](Context& context, http::Request& request,
                            http::ResponseWriter& writer) {
    return stream_input(*inputs, context, request, writer);
  };
  routes.add(Access::RuntimeWrite, "POST", "/process.Process/Start", start);
  routes.add(Access::RuntimeRead, "POST", "/process.Process/Connect", connect);
  routes.add(Access::RuntimeRead, "POST", "/process.Process/List", list);
  routes.add(Access::RuntimeWrite, "POST", "/process.Process/SendSignal", send_signal);
  routes.add(Access::RuntimeWrite, "POST", "/process.Process/SendInput", telling(read_input));
  routes.add(Access::RuntimeWrite, "POST", "/process.Process/CloseStdin", telling(read_end));
  routes.add(Access::RuntimeWrite, "POST", "/process.Process/Update", telling(read_resize));
  routes.add(Access::RuntimeWrite, "POST", "/process.Process/StreamInput", streaming);
}

}  // namespace atl::api::e2b
