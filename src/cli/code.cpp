// code: a cell in a persistent kernel.
#include <fmt/format.h>
#include <stdio.h>

#include <boost/json.hpp>
#include <memory>

#include "atoll/client.h"
#include "cli/code_command.h"
#include "cli/exec_options.h"
#include "cli/report.h"
#include "cli/units.h"
#include "http/target.h"

namespace atl::cli {
namespace {

namespace json = boost::json;

constexpr size_t kMaxSource = 16u << 20;

struct CodeOptions {
  std::string sandbox;
  std::string file;
  std::string language = "python";
  std::string source;
  std::string session;
  std::string cwd;
  std::map<std::string, std::string> env;
  std::chrono::milliseconds timeout{60'000};
};

Result<std::string> read_source(const CodeOptions& options) {
  if (!options.source.empty()) return options.source;
  bool from_input = options.file.empty() || options.file == "-";
  FILE* file = from_input ? stdin : fopen(options.file.c_str(), "re");
  if (file == nullptr) return fail_errno("open", options.file);
  std::string text;
  char block[64 * 1024];
  while (size_t got = fread(block, 1, sizeof block, file)) {
    text.append(block, got);
    if (text.size() > kMaxSource || feof(file) != 0) break;  // a terminal would be asked again
  }
  bool bad = ferror(file) != 0;
  if (!from_input) fclose(file);
  if (bad) return fail(ErrorCode::Internal, "cannot read the code");
  if (text.size() > kMaxSource) return fail(ErrorCode::TooLarge, "the code is larger than 16 MiB");
  return text;
}

std::string body_of(const CodeOptions& options, std::string source) {
  json::object body{{"language", options.language},
                    {"source", std::move(source)},
                    {"timeoutMs", options.timeout.count()}};
  if (!options.session.empty()) body["sessionId"] = options.session;
  if (!options.cwd.empty()) body["cwd"] = options.cwd;
  json::object env;
  for (const auto& [name, value] : options.env) env[name] = value;
  body["env"] = std::move(env);
  return json::serialize(body);
}

std::string text_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

// What a terminal can show of one result.
void print_part(const json::object& part) {
  std::string type = text_of(part, "type");
  if (type == "error") return;  // printed last
  if (type == "image") {
    fmt::print("({} image, {} bytes in base64: --json shows it)\n", text_of(part, "format"),
               text_of(part, "data").size());
    return;
  }
  const json::value* value = part.if_contains("value");
  if (value == nullptr) value = part.if_contains("rows");
  if (value == nullptr) return;
  fmt::print("{}\n",
             value->is_string() ? std::string(value->get_string()) : json::serialize(*value));
}

int print_result(const json::object& result) {
  fmt::print("{}", text_of(result, "stdout"));
  fmt::print(stderr, "{}", text_of(result, "stderr"));
  if (const auto* parts = result.if_contains("results"); parts != nullptr && parts->is_array()) {
    for (const json::value& part : parts->get_array()) {
      if (part.is_object()) print_part(part.get_object());
    }
  }
  fflush(stdout);
  if (const auto* error = result.if_contains("error"); error != nullptr && error->is_object()) {
    std::string traceback = text_of(error->get_object(), "traceback");
    if (!traceback.empty()) fmt::print(stderr, "{}\n", traceback);
    if (traceback.empty() || text_of(error->get_object(), "name") == "TimeoutError") {
      fmt::print(stderr, "{}: {}\n", text_of(error->get_object(), "name"),
                 text_of(error->get_object(), "message"));
    }
  }
  const json::value* code = result.if_contains("exitCode");
  return code != nullptr && code->is_int64() ? static_cast<int>(code->get_int64()) : 1;
}

Result<int> run_code(Client& client, const CodeOptions& options, bool as_json) {
  ATOLL_ASSIGN(std::string source, read_source(options));
  std::string target =
      "/v1/sandboxes/" + http::percent_encode(options.sandbox) + "/runtime/code/run";
  ATOLL_ASSIGN(std::string answer,
               client.call("POST", target, body_of(options, std::move(source))));
  boost::system::error_code bad;
  json::value value = json::parse(answer, bad);
  const json::value* result =
      bad || !value.is_object() ? nullptr : value.get_object().if_contains("result");
  if (result == nullptr || !result->is_object()) {
    return fail(ErrorCode::Internal, "the server's answer cannot be read");
  }
  if (!as_json) return print_result(result->get_object());
  print_json(json::serialize(*result));
  const json::value* code = result->get_object().if_contains("exitCode");
  return code != nullptr && code->is_int64() ? static_cast<int>(code->get_int64()) : 1;
}

}  // namespace

Command code_command() {
  auto state = std::make_shared<CodeOptions>();
  Command command;
  command.name = "code";
  command.summary = "Run code in a kernel that keeps its variables between calls";
  command.examples = {"atoll code web -c 'x = 6 * 7'", "atoll code web -c x",
                      "atoll code web --language node script.js",
                      "echo 'ls | wc -l' | atoll code web --language bash",
                      "atoll --json code web --session s1 -c 'import math; math.pi'"};
  ReadValue read_timeout = [state](const std::string& text) -> Result<void> {
    ATOLL_ASSIGN(state->timeout, parse_duration(text));
    return {};
  };
  command.options = {
      {"-l,--language", "NAME", "python (default), node, typescript or bash", &state->language},
      {"-c,--code", "CODE", "the code itself", &state->source},
      {"-s,--session", "ID", "whose variables (default: one session for all)", &state->session},
      env_flag(state->env),
      {"-w,--cwd", "DIR", "where a kernel that this call starts works", &state->cwd},
      {"--timeout", "TIME", "interrupt it after so long (default: 60s); exit code 124",
       read_timeout},
  };
  command.arguments = {
      {"SANDBOX", "id or name", &state->sandbox, true, Complete::Sandbox},
      {"FILE", "the code; - or nothing: standard input", &state->file, false, Complete::File}};
  command.run = [state](const Globals& globals) {
    return with_client(globals,
                       [&](Client& client) { return run_code(client, *state, globals.json); });
  };
  return command;
}

}  // namespace atl::cli
