// port: ways into sandboxes.
#include <fmt/format.h>
#include <stdio.h>

#include <algorithm>
#include <memory>

#include "cli/forward.h"
#include "cli/json_out.h"
#include "cli/report.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/units.h"

namespace atl::cli {
namespace {

Argument sandbox_argument(std::string& into) {
  return {"SANDBOX", "id or name", &into, true, Complete::Sandbox};
}

struct OpenState {
  std::string sandbox;
  std::string port;
  std::string forward;
  bool open_to_all = false;
  std::optional<std::chrono::seconds> lifetime;
  bool is_signed = false;
  std::optional<std::chrono::seconds> expires;
};

ReadValue seconds_into(std::optional<std::chrono::seconds>& into, bool* given = nullptr) {
  return [&into, given](const std::string& text) -> Result<void> {
    ATOLL_ASSIGN(auto time, parse_duration(text));
    if (time.count() == 0) return fail(ErrorCode::InvalidArgument, "a time, such as 1h");
    into = std::chrono::ceil<std::chrono::seconds>(time);
    if (given != nullptr) *given = true;
    return {};
  };
}

Result<int> open_link(const Globals& globals, Client& client, const OpenState& state,
                      uint16_t port) {
  PreviewRequest request{.port = port};
  if (state.open_to_all) request.access = "public";
  if (state.is_signed) request.access = "signed";
  request.lifetime = state.is_signed ? state.lifetime : state.expires;
  ATOLL_ASSIGN(PreviewInfo link, client.open_port(state.sandbox, request));
  if (globals.json) {
    print_json(link.json);
    return 0;
  }
  if (link.url.empty()) {
    return fail(ErrorCode::InvalidState,
                "the server has no TCP port, so no browser reaches it; use --forward");
  }
  print_out(printable(link.url) + "\n");
  fflush(stdout);
  if (!globals.quiet && link.access == "private") {
    fmt::print(stderr, "Private: open it within 15 minutes, it lasts 12 hours in that browser.\n");
  }
  return 0;
}

int run_open(const Globals& globals, const OpenState& state) {
  if (state.open_to_all && state.is_signed) return report_usage("give --public or --signed");
  if (!state.forward.empty()) {
    if (!state.port.empty()) return report_usage("give PORT or --forward");
    auto request = parse_forward(state.forward);
    if (!request) return report_usage("--forward: " + request.error().message());
    request->sandbox = state.sandbox;
    return with_client(globals, [&](Client& client) { return forward(globals, client, *request); });
  }
  if (state.port.empty()) return report_usage("give PORT, or --forward [LOCAL:]PORT");
  auto port = parse_forward(state.port);
  if (!port || state.port.find(':') != state.port.npos) {
    return report_usage("PORT is a number from 1 to 65535");
  }
  return with_client(globals,
                     [&](Client& client) { return open_link(globals, client, state, port->port); });
}

Command open_command() {
  auto state = std::make_shared<OpenState>();
  Command command;
  command.name = "open";
  command.summary = "Print a URL that opens a port of a sandbox in a browser";
  command.examples = {"atoll port web 3000", "atoll port web 3000 --public",
                      "atoll port web 3000 --signed 1h", "atoll port --forward 8080:3000 web"};
  command.options = {
      {"--public", "", "for anybody who knows the URL", &state->open_to_all},
      {"--signed", "TIME", "for whoever has the URL, for so long",
       seconds_into(state->lifetime, &state->is_signed)},
      {"--expires", "TIME", "the link ends after so long (default: never)",
       seconds_into(state->expires)},
      {"--forward", "[LOCAL:]PORT", "instead, a port of this host that is the sandbox's; any TCP",
       &state->forward}};
  command.arguments = {sandbox_argument(state->sandbox),
                       {"PORT", "what listens inside", &state->port, false}};
  command.run = [state](const Globals& globals) { return run_open(globals, *state); };
  return command;
}

Command ls_command_of_ports() {
  auto sandbox = std::make_shared<std::string>();
  Command command;
  command.name = "ls";
  command.summary = "List the links to a sandbox's ports";
  command.examples = {"atoll port ls web", "atoll port ls web --json | jq -r '.[].url'"};
  command.arguments = {sandbox_argument(*sandbox)};
  command.run = [sandbox](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_ASSIGN(auto links, client.preview_links(*sandbox));
      if (globals.json) {
        print_json(join_json(links));
        return 0;
      }
      Table table({{"LINK"}, {"PORT", Column::Kind::Right}, {"ACCESS"}, {"EXPIRES"}, {"URL"}});
      for (const PreviewInfo& link : links) {
        if (globals.quiet) print_out(printable(link.id) + "\n");
        std::string url = link.url.substr(0, link.url.find('?'));  // whoever looks on sees no token
        std::string expires = link.expires_at.empty() ? "never" : link.expires_at;
        if (link.status != "ready") expires = "over";
        table.add({Cell(printable(link.id)), Cell(std::to_string(link.port)), Cell(link.access),
                   Cell(expires), Cell(printable(url))});
      }
      if (!globals.quiet) table.print();
      return 0;
    });
  };
  return command;
}

// By the link's id, or all of one port.
Result<std::vector<std::string>> links_meant(Client& client, const std::string& sandbox,
                                             const std::string& what) {
  bool number = !what.empty() && what.find_first_not_of("0123456789") == what.npos;
  if (!number) return std::vector<std::string>{what};
  ATOLL_ASSIGN(auto links, client.preview_links(sandbox));
  std::vector<std::string> meant;
  for (const PreviewInfo& link : links) {
    if (std::to_string(link.port) == what) meant.push_back(link.id);
  }
  if (meant.empty()) {
    return fail(ErrorCode::NotFound, "there is no preview link to port " + what);
  }
  return meant;
}

Command rm_command_of_ports() {
  struct State {
    std::string sandbox;
    std::string what;
  };
  auto state = std::make_shared<State>();
  Command command;
  command.name = "rm";
  command.summary = "Remove a link, or all links to a port; who had them open is shut out";
  command.examples = {"atoll port rm web 3000", "atoll port rm web pv-0123456789abcdef"};
  command.arguments = {sandbox_argument(state->sandbox),
                       {"LINK", "a link's id, or a port", &state->what}};
  command.run = [state](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_ASSIGN(auto meant, links_meant(client, state->sandbox, state->what));
      for (const std::string& id : meant) ATOLL_TRY(client.remove_preview_link(state->sandbox, id));
      if (globals.json) {
        print_json("{\"removed\":" + to_json(meant) + "}");
      } else if (!globals.quiet) {
        for (const std::string& id : meant) print_out(printable(id) + "\n");
      }
      return 0;
    });
  };
  return command;
}

}  // namespace

Command port_command() {
  Command command;
  command.name = "port";
  command.summary = "Open a port of a sandbox in a browser, or as a port of this host";
  command.examples = {"atoll port web 3000", "atoll port web 3000 --signed 1h",
                      "atoll port --forward 8080:3000 web", "atoll port ls web"};
  command.commands.push_back(open_command());
  command.commands.push_back(ls_command_of_ports());
  command.commands.push_back(rm_command_of_ports());
  command.usual = "open";
  return command;
}

}  // namespace atl::cli
