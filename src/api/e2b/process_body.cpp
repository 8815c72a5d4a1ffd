#include "api/e2b/process_body.h"

#include <signal.h>
#include <string.h>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "api/exec_body.h"
#include "base/json_escape.h"
#include "http/base64.h"

namespace atl::api::e2b {
namespace {

namespace json = boost::json;
using http::JsonObjectReader;

Error bad(std::string_view field, std::string message) {
  return Error(ErrorCode::InvalidArgument, std::move(message)).with_field(field);
}

Result<void> read_size(JsonObjectReader& pty, uint16_t& cols, uint16_t& rows) {
  ATOLL_ASSIGN(auto size, pty.optional_object("size"));
  if (size) {
    ATOLL_ASSIGN(auto wide, size->optional_integer("cols", 1, 10000));
    ATOLL_ASSIGN(auto high, size->optional_integer("rows", 1, 10000));
    ATOLL_TRY(size->finish());
    cols = static_cast<uint16_t>(wide.value_or(cols));
    rows = static_cast<uint16_t>(high.value_or(rows));
  }
  return pty.finish();
}

// How listings show it: a shell's command by itself.
std::string label_of(const std::vector<std::string>& argv) {
  bool shell = argv.size() == 4 && argv[1] == "-l" && argv[2] == "-c";
  return shell ? argv[3].substr(0, 1024) : std::string();
}

Result<void> read_config(JsonObjectReader& process, SpawnOptions& options) {
  ATOLL_ASSIGN(std::string command, process.require_string("cmd"));
  ATOLL_ASSIGN(auto args, process.string_array("args"));
  ATOLL_ASSIGN(options.env, process.string_map("envs"));
  ATOLL_ASSIGN(auto cwd, process.optional_string("cwd"));
  ATOLL_TRY(process.finish());
  if (command.empty()) return fail(bad("process.cmd", "the command is empty"));
  options.cwd = cwd.value_or("");
  options.argv.push_back(std::move(command));
  for (std::string& argument : args) options.argv.push_back(std::move(argument));
  options.label = label_of(options.argv);
  ATOLL_TRY(check_argv(options.argv, "process.args"));
  return check_environment(options.env, "process.envs");
}

}  // namespace

Result<SpawnOptions> read_start(const http::JsonDocument& document) {
  ATOLL_ASSIGN(const json::object* object, document.object());
  JsonObjectReader reader(*object);
  SpawnOptions options;
  ATOLL_ASSIGN(auto process, reader.require_object("process"));
  ATOLL_TRY(read_config(process, options));
  ATOLL_ASSIGN(auto pty, reader.optional_object("pty"));
  if (pty) {
    options.pty = true;
    ATOLL_TRY(read_size(*pty, options.cols, options.rows));
  }
  ATOLL_ASSIGN(auto input, reader.optional_bool("stdin"));
  // Clients that do not know the field expect an open one.
  options.stdin_open = input.value_or(true);
  ATOLL_ASSIGN(auto tag, reader.optional_string("tag"));
  if (tag && !tag->empty()) {
    return fail(Error(ErrorCode::NotSupported, "'tag' is not supported: use the process id")
                    .with_field("tag"));
  }
  ATOLL_TRY(reader.finish());
  return options;
}

Result<int32_t> read_selector(JsonObjectReader& reader) {
  ATOLL_ASSIGN(auto process, reader.require_object("process"));
  ATOLL_ASSIGN(auto tag, process.optional_string("tag"));
  if (tag) {
    return fail(Error(ErrorCode::NotSupported, "'tag' is not supported: use the process id")
                    .with_field("process.tag"));
  }
  ATOLL_ASSIGN(int64_t pid, process.require_integer("pid", 0, INT32_MAX));
  ATOLL_TRY(process.finish());
  return static_cast<int32_t>(pid);
}

Result<int> read_signal(JsonObjectReader& reader) {
  const json::value* value = reader.any("signal");
  if (value != nullptr && value->is_string()) {
    std::string_view name = value->get_string();
    if (name == "SIGNAL_SIGTERM") return SIGTERM;
    if (name == "SIGNAL_SIGKILL") return SIGKILL;
  }
  if (value != nullptr && value->is_int64()) {
    if (value->get_int64() == SIGTERM || value->get_int64() == SIGKILL) {
      return static_cast<int>(value->get_int64());
    }
  }
  return fail(bad("signal", "a signal is SIGNAL_SIGTERM or SIGNAL_SIGKILL"));
}

Result<ProcessOrder> read_input(JsonObjectReader& reader) {
  ATOLL_ASSIGN(auto input, reader.require_object("input"));
  ATOLL_ASSIGN(auto plain, input.optional_string("stdin"));
  ATOLL_ASSIGN(auto pty, input.optional_string("pty"));
  ATOLL_TRY(input.finish());
  auto bytes = http::base64_decode(plain ? *plain : pty.value_or(""));
  if (!bytes) return fail(bad(plain ? "input.stdin" : "input.pty", "input is base64"));
  return ProcessOrder{.input = std::move(*bytes)};
}

Result<ProcessOrder> read_end(JsonObjectReader&) { return ProcessOrder{.end = true}; }

Result<ProcessOrder> read_resize(JsonObjectReader& reader) {
  ProcessOrder order;
  ATOLL_ASSIGN(auto pty, reader.optional_object("pty"));
  if (pty) ATOLL_TRY(read_size(*pty, order.cols, order.rows));
  return order;
}

json::object process_json(const ProcessInfo& info) {
  return {{"pid", info.pid},
          {"config", json::object{{"cmd", "/bin/bash"},
                                  {"args", json::array{"-l", "-c", to_valid_utf8(info.label)}},
                                  {"cwd", to_valid_utf8(info.cwd)}}}};
}

// As Go's os.ProcessState puts it, which clients show to people.
std::string end_json(const ProcessInfo& info) {
  bool killed = info.exit_signal != 0;
  std::string status = killed ? "signal: " + std::string(strsignal(info.exit_signal))
                              : "exit status " + std::to_string(info.exit_code);
  if (killed) status[8] = static_cast<char>(tolower(status[8]));
  json::object end{
      {"exitCode", killed ? -1 : info.exit_code}, {"exited", !killed}, {"status", status}};
  if (killed || info.exit_code != 0) end["error"] = status;
  return json::serialize(json::object{{"event", json::object{{"end", std::move(end)}}}});
}

}  // namespace atl::api::e2b
