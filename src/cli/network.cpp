#include <fmt/format.h>
#include <stdio.h>

#include <memory>

#include "cli/json_out.h"
#include "cli/network_options.h"
#include "cli/report.h"
#include "cli/terminal.h"

namespace atl::cli {
namespace {

Argument sandbox_argument(std::string& into) {
  return {"SANDBOX", "id or name", &into, true, Complete::Sandbox};
}

Command get_command() {
  auto sandbox = std::make_shared<std::string>();
  Command command;
  command.name = "get";
  command.summary = "Print what a sandbox may reach, as JSON";
  command.examples = {"atoll net get web > policy.json"};
  command.arguments = {sandbox_argument(*sandbox)};
  command.run = [sandbox](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_ASSIGN(std::string policy, client.network_json(*sandbox));
      print_json(policy);
      return 0;
    });
  };
  return command;
}

Command set_command() {
  struct State {
    std::string sandbox;
    std::string file;
    NetworkFlags flags;
  };
  auto state = std::make_shared<State>();
  Command command;
  command.name = "set";
  command.summary =
      "Replace what a sandbox may reach; holds at once, and closes what is denied now";
  command.examples = {"atoll net set web policy.json", "atoll net set web --net deny-all",
                      "atoll net set web --allow api.github.com --allow '*.pypi.org'"};
  command.options = network_flags(state->flags);
  command.arguments = {sandbox_argument(state->sandbox),
                       {"FILE", "the policy as JSON, - for standard input; or allow-all, deny-all",
                        &state->file, false, Complete::File}};
  command.run = [state](const Globals& globals) {
    bool is_mode = state->file == "allow-all" || state->file == "deny-all";
    if (!state->file.empty()) (is_mode ? state->flags.mode : state->flags.file) = state->file;
    auto policy = state->flags.policy();
    if (!policy) return report(policy.error());
    if (!*policy) return report_usage("give FILE, or what to allow");
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_TRY(client.set_network(state->sandbox, **policy));
      if (globals.json) {
        ATOLL_ASSIGN(std::string held, client.network_json(state->sandbox));
        print_json(held);
      }
      return 0;
    });
  };
  return command;
}

std::string to_json(const NetworkEntry& entry) {
  return JsonObject()
      .number("seq", static_cast<int64_t>(entry.seq))
      .text("at", iso_time(entry.at_ms))
      .text("decision", entry.allowed ? "allow" : "deny")
      .text("protocol", entry.protocol)
      .text("host", entry.name)
      .text("address", entry.address)
      .number("port", entry.port)
      .text("rule", entry.rule)
      .text("reason", entry.reason)
      .text("request", entry.request)
      .number("bytesSent", static_cast<int64_t>(entry.sent))
      .number("bytesReceived", static_cast<int64_t>(entry.received))
      .number("durationMs", entry.duration_ms)
      .take();
}

void print_entry(const Globals& globals, const NetworkEntry& entry) {
  if (globals.json) return print_out(to_json(entry) + "\n");
  std::string where = entry.name.empty() ? entry.address : entry.name;
  std::string line =
      fmt::format("{}  {:5}  {:5}  {}:{}", iso_time(entry.at_ms), entry.allowed ? "allow" : "deny",
                  entry.protocol, where, entry.port);
  if (!entry.request.empty()) line += "  " + entry.request;
  if (!entry.rule.empty()) line += "  [" + entry.rule + "]";
  if (!entry.reason.empty()) line += "  " + entry.reason;
  if (entry.allowed) {
    line +=
        fmt::format("  {} bytes out, {} in, {} ms", entry.sent, entry.received, entry.duration_ms);
  }
  print_out(printable(line) + "\n");
}

Command log_command() {
  struct State {
    std::string sandbox;
    bool follow = false;
  };
  auto state = std::make_shared<State>();
  Command command;
  command.name = "log";
  command.summary = "Show what a sandbox has tried to reach, and what became of it";
  command.examples = {"atoll net log web", "atoll net log web -f --json | jq -r .host"};
  command.options = {{"-f,--follow", "", "go on with what happens", &state->follow}};
  command.arguments = {sandbox_argument(state->sandbox)};
  command.run = [state](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      NetworkLogRequest request;
      do {
        ATOLL_ASSIGN(auto entries, client.network_log(state->sandbox, request));
        for (const NetworkEntry& entry : entries) {
          print_entry(globals, entry);
          request.after = entry.seq;
        }
        if (fflush(stdout) != 0) return fail_errno("write", "standard output");
        request.wait = std::chrono::seconds(30);
      } while (state->follow);
      return 0;
    });
  };
  return command;
}

Command explain_command() {
  struct State {
    std::string sandbox;
    std::string url;
    std::string method = "GET";
  };
  auto state = std::make_shared<State>();
  Command command;
  command.name = "explain";
  command.summary = "Say what would become of a request, and why";
  command.examples = {"atoll net explain web https://api.openai.com/v1/models",
                      "atoll net explain web tcp://db.example.org:5432"};
  command.options = {{"--method", "METHOD", "of the request (default: GET)", &state->method}};
  command.arguments = {sandbox_argument(state->sandbox),
                       {"URL", "https://, http:// or tcp://HOST:PORT", &state->url}};
  command.run = [state](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_ASSIGN(auto found, client.explain_network(state->sandbox, state->url, state->method));
      if (globals.json) {
        print_json(found.json);
        return found.allowed ? 0 : 1;
      }
      std::string line = (found.allowed ? "allowed" : "denied");
      if (!found.rule.empty()) line += " by " + found.rule;
      line += ": " + found.treatment;
      if (found.status_code != 0) line += fmt::format("; a rule answers {}", found.status_code);
      if (!found.forward_url.empty()) line += "; forwarded to " + found.forward_url;
      if (!found.reason.empty()) line += " (" + found.reason + ")";
      print_out(printable(line) + "\n");
      return found.allowed ? 0 : 1;
    });
  };
  return command;
}

}  // namespace

Command net_command() {
  Command command;
  command.name = "net";
  command.summary = "See and change what a sandbox may reach";
  command.examples = {"atoll net set web policy.json", "atoll net log web -f"};
  command.commands.push_back(get_command());
  command.commands.push_back(set_command());
  command.commands.push_back(log_command());
  command.commands.push_back(explain_command());
  return command;
}

}  // namespace atl::cli
