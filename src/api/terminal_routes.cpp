// Terminals over WebSocket. A terminal is a process on a pty whose label names its connection id:
// whoever comes back with that id finds it again, also after a restart of the server.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/json/serialize.hpp>

#include "api/exec_body.h"
#include "api/routes.h"
#include "api/shapes.h"
#include "base/random_id.h"

namespace atl::api {
namespace {

namespace json = boost::json;

constexpr std::string_view kLabel = "terminal:";

struct Init {
  SpawnOptions spawn;
};

Result<Init> read_init(const std::string& text) {
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
  Init init;
  ATOLL_ASSIGN(init.spawn.env, reader.string_map("env"));
  ATOLL_TRY(reader.finish());
  init.spawn.argv = command ? shell_argv(*command) : std::vector<std::string>{"/bin/bash", "-l"};
  init.spawn.cwd = cwd.value_or("");
  init.spawn.user = user.value_or("");
  init.spawn.pty = true;
  init.spawn.cols = static_cast<uint16_t>(cols.value_or(80));
  init.spawn.rows = static_cast<uint16_t>(rows.value_or(24));
  return init;
}

class Terminal : public std::enable_shared_from_this<Terminal> {
 public:
  Terminal(std::shared_ptr<http::WebSocket> socket, std::shared_ptr<SandboxSession> session,
           std::string id)
      : socket_(std::move(socket)), session_(std::move(session)), id_(std::move(id)) {}

  Task<void> run() {
    auto opened = co_await open();
    if (!opened) {
      json::object error{{"type", "error"}, {"message", opened.error().message()}};
      (void)co_await socket_->send_text(json::serialize(error));
      co_await socket_->close(http::CloseCode::PolicyViolation, "refused");
      co_return;
    }
    auto self = shared_from_this();
    boost::asio::co_spawn(
        co_await boost::asio::this_coro::executor,
        [self]() -> Task<void> { return self->pump_input(); }, boost::asio::detached);
    if (co_await pump_output()) {
      co_await socket_->close(http::CloseCode::Normal, "the shell has ended");
    } else {
      socket_->abort();
    }
    stream_->cancel();
  }

 private:
  Task<Result<void>> open() {
    ATOLL_CO_ASSIGN(auto first, co_await socket_->receive());
    ATOLL_CO_ASSIGN(Init init, read_init(first.data));
    std::string label = std::string(kLabel) + id_;
    ATOLL_CO_ASSIGN(auto processes, co_await session_->processes());
    ProcessInfo process;
    bool restored = false;
    for (ProcessInfo& candidate : processes) {
      if (candidate.label != label || !candidate.running) continue;
      process = std::move(candidate);
      restored = true;
    }
    if (!restored) {
      init.spawn.label = label;
      ATOLL_CO_ASSIGN(process, co_await session_->spawn(init.spawn));
    }
    ATOLL_CO_ASSIGN(stream_, co_await session_->attach(process.pid, AttachOptions{}));
    if (restored) ATOLL_CO_TRY(co_await stream_->resize(init.spawn.cols, init.spawn.rows));
    json::object ready{{"type", "ready"},
                       {"connectionId", id_},
                       {"sessionId", std::to_string(process.pid)},
                       {"restored", restored}};
    co_return co_await socket_->send_text(json::serialize(ready));
  }

  Task<Result<void>> pump_output() {
    for (;;) {
      ATOLL_CO_ASSIGN(OutputEvent event, co_await stream_->next());
      if (event.kind == OutputEvent::Kind::Data) {
        ATOLL_CO_TRY(co_await socket_->send_binary(event.data));
      } else if (event.kind == OutputEvent::Kind::Exited) {
        json::object end{{"type", "exit"},
                         {"exitCode", event.process.exit_code},
                         {"exitSignal", event.process.exit_signal}};
        co_return co_await socket_->send_text(json::serialize(end));
      }
    }
  }

  Task<Result<void>> handle(std::string text) {
    ATOLL_CO_ASSIGN(auto document, http::JsonDocument::parse(text, 1u << 20));
    ATOLL_CO_ASSIGN(const json::object* object, document.object());
    http::JsonObjectReader reader(*object);
    ATOLL_CO_ASSIGN(std::string type, reader.require_string("type"));
    if (type == "input") {
      ATOLL_CO_ASSIGN(std::string data, reader.require_string("data"));
      ATOLL_CO_TRY(reader.finish());
      co_return co_await stream_->write_input(std::move(data));
    }
    if (type == "resize") {
      ATOLL_CO_ASSIGN(int64_t cols, reader.require_integer("cols", 1, 10000));
      ATOLL_CO_ASSIGN(int64_t rows, reader.require_integer("rows", 1, 10000));
      ATOLL_CO_TRY(reader.finish());
      co_return co_await stream_->resize(static_cast<uint16_t>(cols), static_cast<uint16_t>(rows));
    }
    co_return fail(
        Error(ErrorCode::InvalidArgument, "unknown type '" + type + "'").with_field("type"));
  }

  Task<void> pump_input() {
    for (;;) {
      auto message = co_await socket_->receive();
      if (!message) break;
      Result<void> handled = message->binary
                                 ? co_await stream_->write_input(std::move(message->data))
                                 : co_await handle(std::move(message->data));
      if (handled) continue;
      json::object error{{"type", "error"}, {"message", handled.error().message()}};
      if (!co_await socket_->send_text(json::serialize(error))) break;
    }
    stream_->cancel();
  }

  std::shared_ptr<http::WebSocket> socket_;
  std::shared_ptr<SandboxSession> session_;
  std::string id_;
  std::unique_ptr<ProcessStream> stream_;
};

Task<Result<void>> terminal(Context& context, http::Request& request,
                            http::ResponseWriter& writer) {
  std::string id = request.param("connection");
  if (id.size() > 128)
    co_return fail(ErrorCode::InvalidArgument, "a connection id has at most 128 bytes");
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_ASSIGN(auto socket, co_await writer.upgrade_websocket(http::WebSocketOptions()));
  auto running = std::make_shared<Terminal>(std::move(socket), target.session, std::move(id));
  co_await running->run();
  co_return Result<void>();
}

}  // namespace

void add_terminal_routes(RuntimeRoutes& routes) {
  routes.add(Access::RuntimeTerminal, "GET", "/terminals/{connection}/ws", terminal);
}

}  // namespace atl::api
