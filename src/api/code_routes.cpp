// Code in persistent kernels: cells, and the contexts that they run in.
#include <boost/json/serialize.hpp>

#include "api/code_shapes.h"
#include "api/exec_body.h"
#include "api/routes.h"
#include "api/shapes.h"
#include "base/json_escape.h"
#include "code/replays.h"

namespace atl::api {
namespace {

namespace json = boost::json;

constexpr int64_t kMaxTimeoutMs = 24ll * 3600 * 1000;
constexpr int64_t kDefaultTimeoutMs = 60'000;

struct CodeRequest {
  code::RunOrder order;
  std::string key;
  bool stream = false;
};

Result<CodeRequest> read_code(const http::JsonDocument& document) {
  ATOLL_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader reader(*object);
  CodeRequest asked;
  ATOLL_ASSIGN(std::string language, reader.require_string("language"));
  ATOLL_ASSIGN(asked.order.context.language, code::parse_language(language));
  ATOLL_ASSIGN(asked.order.cell.code, reader.require_string("source"));
  ATOLL_ASSIGN(auto session, reader.optional_string("sessionId"));
  if (session) {
    ATOLL_TRY(code::check_session(*session, "sessionId"));
    asked.order.context.session = *session;
  }
  ATOLL_ASSIGN(auto timeout, reader.optional_integer("timeoutMs", 0, kMaxTimeoutMs));
  asked.order.timeout = std::chrono::milliseconds(timeout.value_or(kDefaultTimeoutMs));
  ATOLL_ASSIGN(asked.order.cell.env, reader.string_map("env"));
  ATOLL_TRY(check_environment(asked.order.cell.env, "env"));
  ATOLL_ASSIGN(auto cwd, reader.optional_string("cwd"));
  asked.order.cwd = cwd.value_or("");
  ATOLL_ASSIGN(auto key, reader.optional_string("idempotencyKey"));
  asked.key = key.value_or("");
  if (asked.key.size() > 256) {
    return fail(
        Error(ErrorCode::InvalidArgument, "at most 256 bytes").with_field("idempotencyKey"));
  }
  ATOLL_ASSIGN(auto stream, reader.optional_bool("stream"));
  asked.stream = stream.value_or(false);
  if (asked.stream && !asked.key.empty()) {
    return fail(Error(ErrorCode::InvalidArgument, "a stream cannot be given a second time")
                    .with_field("idempotencyKey"));
  }
  ATOLL_TRY(reader.finish());
  return asked;
}

using Cancellation = std::shared_ptr<code::Cancellation>;

// On its own: whoever asked may be gone before it ends.
Task<Result<code::Replays::Answer>> run_whole(std::shared_ptr<code::Interpreter> interpreter,
                                              std::shared_ptr<Target> target, code::RunOrder order,
                                              http::MemoryShare memory, Cancellation cancellation) {
  CellCollector collector(std::move(memory));
  code::ContextId id = order.context;
  ATOLL_CO_ASSIGN(
      code::Outcome outcome,
      co_await interpreter->run(target->session, std::move(order), collector, cancellation));
  bool keep = outcome.exit_code == 0 && !outcome.error;
  json::object body{{"success", true}, {"result", collector.result(outcome, id)}};
  co_return code::Replays::Answer{.text = std::make_shared<std::string>(json::serialize(body)),
                                  .keep = keep};
}

// A line for everything as it comes.
class LineWriter : public code::Listener {
 public:
  explicit LineWriter(http::ResponseWriter& writer) : writer_(writer) {}

  Task<Result<void>> on_event(code::Event event) override {
    switch (event.kind) {
      case code::Event::Kind::Begun:
        break;
      case code::Event::Kind::Stdout:
      case code::Event::Kind::Stderr: {
        bool is_stdout = event.kind == code::Event::Kind::Stdout;
        std::string line =
            is_stdout ? R"({"type":"stdout","text":)" : R"({"type":"stderr","text":)";
        append_json_string(line, event.text);
        co_return co_await write(std::move(line) + "}\n");
      }
      case code::Event::Kind::Result:
        co_return co_await write(
            json::serialize(json::object{{"type", "result"}, {"part", part_json(event)}}) + "\n");
      case code::Event::Kind::Error:
        break;  // the last line has it
    }
    co_return Result<void>();
  }
  // The answer begins when there is something to say: until then it can be an error.
  Task<Result<void>> write(std::string line) {
    if (!writer_.started()) {
      ATOLL_CO_TRY(co_await writer_.start(200, {{"content-type", "application/x-ndjson"}}));
    }
    co_return co_await writer_.write(line);
  }

 private:
  http::ResponseWriter& writer_;
};

Task<Result<void>> run_streaming(Context& context, Target& target, code::RunOrder order,
                                 http::ResponseWriter& writer, Cancellation cancellation) {
  LineWriter lines(writer);
  code::ContextId id = order.context;
  ATOLL_CO_ASSIGN(
      code::Outcome outcome,
      co_await context.service.code->run(target.session, std::move(order), lines, cancellation));
  json::object last = outcome_json(outcome, id);
  last["type"] = "end";
  ATOLL_CO_TRY(co_await lines.write(json::serialize(last) + "\n"));
  co_return co_await writer.finish();
}

Task<Result<void>> run_code(Context& context, http::Request& request,
                            http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request));
  ATOLL_CO_ASSIGN(CodeRequest asked, read_code(document));
  ATOLL_CO_ASSIGN(Target found, co_await find_running(context, request));
  RunOptions shown;
  shown.label = asked.order.context.text() + ": " + asked.order.cell.code.substr(0, 200);
  ATOLL_CO_TRY(co_await keep_point(context, found, shown));
  auto cancellation = std::make_shared<code::Cancellation>();
  if (asked.key.empty()) writer.on_closed([cancellation] { cancellation->cancel(); });
  if (asked.stream) {
    co_return co_await run_streaming(context, found, std::move(asked.order), writer, cancellation);
  }
  auto target = std::make_shared<Target>(std::move(found));
  auto memory = std::make_shared<http::MemoryShare>(std::move(request.memory));
  std::string key = target->sandbox->record.id + "/" + asked.order.context.text() + "/" + asked.key;
  auto make = [code = context.service.code, target, memory, cancellation,
               order = std::make_shared<code::RunOrder>(std::move(asked.order))] {
    return run_whole(code, target, std::move(*order), std::move(*memory), cancellation);
  };
  if (asked.key.empty()) {
    ATOLL_CO_ASSIGN(auto answer, co_await make());
    co_return co_await writer.send_json(*answer.text);
  }
  ATOLL_CO_ASSIGN(auto text, co_await context.service.replays->once(std::move(key), make));
  co_return co_await writer.send_json(*text);
}

Task<Result<void>> list_contexts(Context& context, http::Request& request,
                                 http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_ASSIGN(auto found, co_await context.service.code->list(target.session));
  json::array items;
  for (const code::ContextInfo& one : found) items.push_back(context_json(one));
  co_return co_await writer.send_json(success(std::move(items)));
}

Task<Result<void>> create_context(Context& context, http::Request& request,
                                  http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader reader(*object);
  code::Interpreter::NewContext wanted;
  ATOLL_CO_ASSIGN(auto language, reader.optional_string("language"));
  ATOLL_CO_ASSIGN(wanted.language, code::parse_language(language.value_or("python")));
  ATOLL_CO_ASSIGN(auto cwd, reader.optional_string("cwd"));
  ATOLL_CO_ASSIGN(auto session, reader.optional_string("sessionId"));
  ATOLL_CO_TRY(reader.finish());
  if (session) ATOLL_CO_TRY(code::check_session(*session, "sessionId"));
  wanted.cwd = cwd.value_or("");
  wanted.session = session.value_or("");
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_ASSIGN(auto made, co_await context.service.code->create(target.session, wanted));
  co_return co_await writer.send_json(success(context_json(made)));
}

Task<Result<void>> remove_context(Context& context, http::Request& request,
                                  http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto id, code::parse_context_id(request.param("context")));
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_TRY(co_await context.service.code->remove(target.session, id));
  co_return co_await writer.send_json(std::string(kSuccess));
}

Task<Result<void>> restart_context(Context& context, http::Request& request,
                                   http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto id, code::parse_context_id(request.param("context")));
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_TRY(co_await context.service.code->restart(target.session, id));
  co_return co_await writer.send_json(std::string(kSuccess));
}

Task<Result<void>> fork_context(Context& context, http::Request& request,
                                http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto id, code::parse_context_id(request.param("context")));
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(auto session, reader.optional_string("sessionId"));
  ATOLL_CO_TRY(reader.finish());
  if (session) ATOLL_CO_TRY(code::check_session(*session, "sessionId"));
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_ASSIGN(auto made,
                  co_await context.service.code->fork(target.session, id, session.value_or("")));
  co_return co_await writer.send_json(success(context_json(made)));
}

}  // namespace

void add_code_routes(RuntimeRoutes& routes) {
  routes.add(Access::RuntimeWrite, "POST", "/code/run", run_code);
  routes.add(Access::RuntimeRead, "GET", "/code/contexts", list_contexts);
  routes.add(Access::RuntimeWrite, "POST", "/code/contexts", create_context);
  routes.add(Access::RuntimeWrite, "DELETE", "/code/contexts/{context}", remove_context);
  routes.add(Access::RuntimeWrite, "POST", "/code/contexts/{context}/restart", restart_context);
  routes.add(Access::RuntimeWrite, "POST", "/code/contexts/{context}/fork", fork_context);
}

}  // namespace atl::api
