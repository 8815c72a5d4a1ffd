// E2B's code interpreter, which its packages expect on port 49999 of a sandbox: cells as streams of
// lines, and contexts.
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "api/e2b/call.h"
#include "api/e2b/routes.h"
#include "api/exec_body.h"
#include "base/json_escape.h"
#include "code/interpreter.h"

namespace atl::api::e2b {
namespace {

namespace json = boost::json;
using http::JsonObjectReader;

struct Field {
  std::string_view type;
  std::string_view name;
};
// What their results call the media types that they know.
constexpr Field kFields[] = {
    {"text/plain", "text"},
    {"text/html", "html"},
    {"text/markdown", "markdown"},
    {"image/svg+xml", "svg"},
    {"image/png", "png"},
    {"image/jpeg", "jpeg"},
    {"application/pdf", "pdf"},
    {"text/latex", "latex"},
    {"application/json", "json"},
    {"application/javascript", "javascript"},
    {"application/x-atoll-data+json", "data"},
};

json::object result_json(const code::Event& event) {
  json::object line{{"type", "result"}, {"is_main_result", event.main}};
  json::object extra;
  for (const auto& entry : event.data) {
    bool known = false;
    for (const Field& field : kFields) {
      if (field.type != std::string_view(entry.key())) continue;
      line[field.name] = entry.value();
      known = true;
    }
    bool own = std::string_view(entry.key()).starts_with("application/x-atoll-");
    if (!known && !own) extra[entry.key()] = entry.value();
  }
  if (!extra.empty()) line["extra"] = std::move(extra);
  return line;
}

std::string text_line(const code::Event& event) {
  bool is_stdout = event.kind == code::Event::Kind::Stdout;
  std::string line = is_stdout ? R"({"type":"stdout","text":)" : R"({"type":"stderr","text":)";
  append_json_string(line, event.text);
  return line + ",\"timestamp\":" + std::to_string(sandbox::wall_clock_ms() * 1'000'000) + "}\n";
}

json::object error_line(const code::CellError& error) {
  return {{"type", "error"},
          {"name", to_valid_utf8(error.name)},
          {"value", to_valid_utf8(error.value)},
          {"traceback", to_valid_utf8(error.traceback)}};
}

class Lines : public code::Listener {
 public:
  explicit Lines(http::ResponseWriter& writer) : writer_(writer) {}

  Task<Result<void>> on_event(code::Event event) override {
    switch (event.kind) {
      case code::Event::Kind::Begun:
        return write(json::serialize(json::object{{"type", "number_of_executions"},
                                                  {"execution_count", event.number}}) +
                     "\n");
      case code::Event::Kind::Stdout:
      case code::Event::Kind::Stderr:
        return write(text_line(event));
      case code::Event::Kind::Result:
        return write(json::serialize(result_json(event)) + "\n");
      case code::Event::Kind::Error:
        return write(json::serialize(error_line(event.error)) + "\n");
    }
    return write("");
  }
  // Until there is something to say, the answer can still be an error.
  Task<Result<void>> write(std::string line) {
    if (!writer_.started()) {
      ATOLL_CO_TRY(co_await writer_.start(200, {{"content-type", "application/x-ndjson"}}));
    }
    co_return co_await writer_.write(line);
  }

 private:
  http::ResponseWriter& writer_;
};

Result<code::RunOrder> read_execute(const http::JsonDocument& document) {
  ATOLL_ASSIGN(const json::object* object, document.object());
  JsonObjectReader reader(*object);
  code::RunOrder order;
  order.timeout = std::chrono::milliseconds(0);  // the client goes away when it has waited enough
  ATOLL_ASSIGN(order.cell.code, reader.require_string("code"));
  ATOLL_ASSIGN(auto context, reader.optional_string("context_id"));
  ATOLL_ASSIGN(auto language, reader.optional_string("language"));
  ATOLL_ASSIGN(order.cell.env, reader.string_map("env_vars"));
  ATOLL_TRY(reader.finish());
  ATOLL_TRY(check_environment(order.cell.env, "env_vars"));
  if (context) {
    ATOLL_ASSIGN(order.context, code::parse_context_id(*context));
    order.must_exist = true;
  } else {
    ATOLL_ASSIGN(order.context.language, code::parse_language(language.value_or("python")));
  }
  return order;
}

Task<Result<void>> execute(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request));
  ATOLL_CO_ASSIGN(code::RunOrder order, read_execute(document));
  ATOLL_CO_ASSIGN(Call call, co_await open_interpreter_call(context, request));
  order.cwd = call.base;
  order.user = call.user;
  RunOptions shown;
  shown.label = order.context.text() + ": " + order.cell.code.substr(0, 200);
  ATOLL_CO_TRY(co_await keep_point(context, call.target, shown));
  auto cancellation = std::make_shared<code::Cancellation>();
  writer.on_closed([cancellation] { cancellation->cancel(); });
  Lines lines(writer);
  bool is_bash = order.context.language == code::Language::Bash;
  ATOLL_CO_ASSIGN(code::Outcome outcome,
                  co_await context.service.code->run(call.target.session, std::move(order), lines,
                                                     cancellation));
  if (is_bash && outcome.exit_code != 0 && !outcome.error) {
    // Nothing else here could say so.
    code::CellError status{.name = "ExitStatus", .value = std::to_string(outcome.exit_code)};
    ATOLL_CO_TRY(co_await lines.write(json::serialize(error_line(status)) + "\n"));
  }
  ATOLL_CO_TRY(co_await lines.write("{\"type\":\"end_of_execution\"}\n"));
  co_return co_await writer.finish();
}

json::object context_json(const code::ContextInfo& context) {
  // What their packages call it.
  bool is_node = context.id.language == code::Language::Node;
  return {{"id", context.id.text()},
          {"language", is_node ? "javascript" : code::name_of(context.id.language)},
          {"cwd", context.cwd}};
}

Task<Result<void>> list(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(Call call, co_await open_interpreter_call(context, request));
  ATOLL_CO_ASSIGN(auto found, co_await context.service.code->list(call.target.session));
  json::array items;
  for (const code::ContextInfo& one : found) items.push_back(context_json(one));
  co_return co_await writer.send_json(json::serialize(items));
}

Task<Result<void>> create(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(auto language, reader.optional_string("language"));
  ATOLL_CO_ASSIGN(auto cwd, reader.optional_string("cwd"));
  ATOLL_CO_TRY(reader.finish());
  code::Interpreter::NewContext wanted;
  ATOLL_CO_ASSIGN(wanted.language, code::parse_language(language.value_or("python")));
  ATOLL_CO_ASSIGN(Call call, co_await open_interpreter_call(context, request));
  wanted.cwd = call.resolve(cwd.value_or(""));
  wanted.user = call.user;
  ATOLL_CO_ASSIGN(auto made, co_await context.service.code->create(call.target.session, wanted));
  co_return co_await writer.send_json(json::serialize(context_json(made)));
}

Task<Result<void>> remove(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto id, code::parse_context_id(request.param("context")));
  ATOLL_CO_ASSIGN(Call call, co_await open_interpreter_call(context, request));
  ATOLL_CO_TRY(co_await context.service.code->remove(call.target.session, id));
  co_return co_await writer.send_json("{}");
}

Task<Result<void>> restart(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto id, code::parse_context_id(request.param("context")));
  ATOLL_CO_ASSIGN(Call call, co_await open_interpreter_call(context, request));
  ATOLL_CO_TRY(co_await context.service.code->restart(call.target.session, id));
  co_return co_await writer.send_json("{}");
}

}  // namespace

void add_code_calls(ControlRoutes& routes) {
  routes.add(Access::RuntimeWrite, "POST", "/execute", execute);
  routes.add(Access::RuntimeRead, "GET", "/contexts", list);
  routes.add(Access::RuntimeWrite, "POST", "/contexts", create);
  routes.add(Access::RuntimeWrite, "DELETE", "/contexts/{context}", remove);
  routes.add(Access::RuntimeWrite, "POST", "/contexts/{context}/restart", restart);
}

}  // namespace atl::api::e2b
