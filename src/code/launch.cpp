#include "code/launch.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/json_escape.h"

extern "C" {
extern const char atoll_kernel_python_begin[], atoll_kernel_python_end[];
extern const char atoll_kernel_branch_begin[], atoll_kernel_branch_end[];
extern const char atoll_kernel_node_begin[], atoll_kernel_node_end[];
extern const char atoll_kernel_bash_begin[], atoll_kernel_bash_end[];
}

namespace atl::code {
namespace {

namespace json = boost::json;

// Each reads "LENGTH\n" and so many bytes of program from its input, and hands on what it has read
// beyond.
constexpr const char* kPythonBoot = R"(import os
b = b""
while b"\n" not in b or len(b) <= b.index(b"\n") + int(b[:b.index(b"\n")]):
    p = os.read(0, 1 << 20)
    if not p: os._exit(1)
    b += p
i = b.index(b"\n") + 1
n = i + int(b[:i])
exec(compile(b[i:n], "<atoll kernel>", "exec"), {"__name__": "atoll_kernel", "rest": b[n:]}))";

constexpr const char* kNodeBoot = R"(const fs = require("fs");
let b = Buffer.alloc(0), i = 0, n = 0;
while (i === 0 || b.length < n) {
  const p = Buffer.alloc(1 << 18), k = fs.readSync(7, p);
  if (k === 0) process.exit(1);
  b = Buffer.concat([b, p.subarray(0, k)]);
  if (i === 0 && (i = b.indexOf(10) + 1) > 0) n = i + Number(b.subarray(0, i - 1).toString());
}
new Function("require", "rest", b.subarray(i, n).toString())(require, b.subarray(n));)";

// Node cannot copy descriptors: a shell gives it the channel out of the way of programs.
constexpr const char* kNodeShell = R"(exec node -e "$1" 7<&0 8>&1 9>&2 </dev/null)";

std::string with_length(std::string_view program) {
  return std::to_string(program.size()) + "\n" + std::string(program);
}

std::string bash_request(const Cell& cell, const std::string& mark) {
  std::string lines = "__atoll_begin " + mark + "\n";
  for (const auto& [name, value] : cell.env) {
    lines += "__atoll_set " + name + " " + shell_quoted(value) + "\n";
  }
  // An interrupt ends one line; the last says how it went in any case.
  lines += "eval " + shell_quoted(cell.code) + " </dev/null\n";
  lines += "__atoll_end " + mark + " $?\n";
  return lines;
}

std::string line(const json::object& request) { return json::serialize(request) + "\n"; }

}  // namespace

std::string shell_quoted(std::string_view text) {
  std::string out = "$'";
  for (char c : text) {
    switch (c) {
      case '\\':
        out += "\\\\";
        break;
      case '\'':
        out += "\\'";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\0':
        break;  // no string of bash's can have one
      default:
        out += c;
    }
  }
  return out + "'";
}

SpawnOptions kernel_command(Language language) {
  SpawnOptions options;
  options.stdin_open = true;
  switch (language) {
    case Language::Python:
      options.argv = {"python3", "-c", kPythonBoot};
      break;
    case Language::Node:
    case Language::TypeScript:
      options.argv = {"/bin/sh", "-c", kNodeShell, "sh", kNodeBoot};
      break;
    case Language::Bash:
      options.argv = {"bash", "--norc", "--noprofile", "--noediting", "-i"};
      options.env = {{"PS1", ""}};
      break;
  }
  return options;
}

std::string kernel_program(Language language) {
  switch (language) {
    case Language::Python:
      return with_length({atoll_kernel_python_begin, atoll_kernel_python_end});
    case Language::Node:
    case Language::TypeScript:
      return with_length({atoll_kernel_node_begin, atoll_kernel_node_end});
    case Language::Bash:
      return {atoll_kernel_bash_begin, atoll_kernel_bash_end};
  }
  return {};
}

SpawnOptions branch_command(const std::string& door) {
  SpawnOptions options;
  options.stdin_open = true;
  std::string program(atoll_kernel_branch_begin, atoll_kernel_branch_end);
  options.argv = {"python3", "-I", "-S", "-c", std::move(program), door};
  return options;
}

std::string run_request(Language language, const Cell& cell, const std::string& mark) {
  if (language == Language::Bash) return bash_request(cell, mark);
  json::object env;
  for (const auto& [name, value] : cell.env) env[name] = value;
  return line({{"op", "run"},
               {"mark", mark},
               {"language", name_of(language)},
               {"code", cell.code},
               {"env", std::move(env)}});
}

std::string fork_request(const std::string& door, const std::string& mark) {
  return line({{"op", "fork"}, {"mark", mark}, {"door", door}});
}

Error missing_program(Language language) {
  std::string_view program = language == Language::Python ? "python3"
                             : language == Language::Bash ? "bash"
                                                          : "node";
  return Error(ErrorCode::NotSupported, "the sandbox has no " + std::string(program) +
                                            ", which runs " + std::string(name_of(language)) +
                                            ": install it, or take a template that has it")
      .with_field("language");
}

}  // namespace atl::code
