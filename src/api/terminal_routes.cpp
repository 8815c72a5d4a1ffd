// Terminals over WebSocket. A terminal is a process on a pty whose label names its connection id:
// whoever comes back with that id finds it again, also after a restart of the server.
#include <boost/json/serialize.hpp>

#include "api/exec_body.h"
#include "api/process_socket.h"
#include "api/routes.h"

namespace atl::api {
namespace {

namespace json = boost::json;

constexpr std::string_view kLabel = "terminal:";

Result<SpawnOptions> read_init(const std::string& text) {
  ATOLL_ASSIGN(auto document, http::JsonDocument::parse(text, 256u << 10));
  ATOLL_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader reader(*object);
  ATOLL_ASSIGN(std::string type, reader.require_string("type"));
  if (type != "init")
    return fail(ErrorCode::InvalidArgument, "the first frame is {\"type\":\"init\"}");
  ATOLL_ASSIGN(auto cols, reader.optional_integer("cols", 1, 10000));
  ATOLL_ASSIGN(auto rows, reader.optional_integer("rows", 1, 10000));
  ATOLL_ASSIGN(auto command, reader.optional_string("command"));
  ATOLL_ASSIGN(auto cwd, reader.optional_string("cwd"));
  ATOLL_ASSIGN(auto user, reader.optional_string("user"));
  SpawnOptions options;
  ATOLL_ASSIGN(options.env, reader.string_map("env"));
  ATOLL_TRY(reader.finish());
  options.argv = command ? shell_argv(*command) : std::vector<std::string>{"/bin/bash", "-l"};
  options.cwd = cwd.value_or("");
  options.user = user.value_or("");
  options.pty = true;
  options.cols = static_cast<uint16_t>(cols.value_or(80));
  options.rows = static_cast<uint16_t>(rows.value_or(24));
  return options;
}

class Terminal : public ProcessSocket {
 public:
  Terminal(std::shared_ptr<http::WebSocket> socket, std::shared_ptr<SandboxSession> session,
           std::string id)
      : ProcessSocket(std::move(socket)), session_(std::move(session)), id_(std::move(id)) {}

  Task<void> run() {
    auto opened = co_await open();
    if (opened) co_return co_await pump(std::move(*opened));
    (void)co_await send_error(opened.error());
    co_await socket().close(http::CloseCode::PolicyViolation, "refused");
  }

 private:
  Task<Result<std::unique_ptr<ProcessStream>>> open() {
    ATOLL_CO_ASSIGN(auto first, co_await socket().receive());
    ATOLL_CO_ASSIGN(SpawnOptions options, read_init(first.data));
    options.label = std::string(kLabel) + id_;
    ATOLL_CO_ASSIGN(auto running, co_await find(options.label));
    bool restored = running.has_value();
    if (!restored) {
      ATOLL_CO_ASSIGN(running, co_await session_->spawn(options));
    }
    ATOLL_CO_ASSIGN(auto stream, co_await session_->attach(running->pid, AttachOptions{}));
    if (restored) ATOLL_CO_TRY(co_await stream->resize(options.cols, options.rows));
    json::object ready{{"type", "ready"},
                       {"connectionId", id_},
                       {"sessionId", std::to_string(running->pid)},
                       {"restored", restored}};
    ATOLL_CO_TRY(co_await socket().send_text(json::serialize(ready)));
    co_return std::move(stream);
  }

  Task<Result<std::optional<ProcessInfo>>> find(std::string label) {
    ATOLL_CO_ASSIGN(auto processes, co_await session_->processes());
    for (ProcessInfo& process : processes) {
      if (process.label == label && process.running) co_return std::move(process);
    }
    co_return std::optional<ProcessInfo>();
  }

  Task<Result<void>> send_event(const OutputEvent& event) override {
    if (event.kind == OutputEvent::Kind::Data) {
      co_return co_await socket().send_binary(event.data);
    }
    if (event.kind == OutputEvent::Kind::Lost) co_return Result<void>();
    json::object end{{"type", "exit"},
                     {"exitCode", event.process.exit_code},
                     {"exitSignal", event.process.exit_signal}};
    co_return co_await socket().send_text(json::serialize(end));
  }

  Task<Result<void>> on_binary(std::string data) override {
    return stream().write_input(std::move(data));
  }

  Task<Result<void>> on_text(const std::string& type, http::JsonObjectReader& fields) override {
    if (type != "input") co_return unknown_type(type);
    ATOLL_CO_ASSIGN(std::string data, fields.require_string("data"));
    ATOLL_CO_TRY(fields.finish());
    co_return co_await stream().write_input(std::move(data));
  }

  std::shared_ptr<SandboxSession> session_;
  std::string id_;
};

Task<Result<void>> terminal(Context& context, http::Request& request,
                            http::ResponseWriter& writer) {
  std::string id = request.param("connection");
  if (id.size() > 128)
    co_return fail(ErrorCode::InvalidArgument, "a connection id has at most 128 bytes");
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_ASSIGN(auto socket,
                  co_await writer.upgrade_websocket(websocket_options(context.service.settings)));
  auto running = std::make_shared<Terminal>(std::move(socket), target.session, std::move(id));
  co_await running->run();
  co_return Result<void>();
}

}  // namespace

void add_terminal_routes(RuntimeRoutes& routes) {
  routes.add(Access::RuntimeTerminal, "GET", "/terminals/{connection}/ws", terminal);
}

}  // namespace atl::api
