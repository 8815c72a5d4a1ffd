#include <fmt/format.h>
#include <stdio.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "cli/json_out.h"
#include "cli/reattach.h"
#include "cli/report.h"
#include "cli/terminal.h"

namespace atl::cli {
namespace {

constexpr std::chrono::milliseconds kFirstPause{50};
constexpr std::chrono::milliseconds kLongestPause{5'000};

bool print_event(const Globals& globals, const SandboxEvent& event) {
  if (globals.json) {
    print_out(
        JsonObject().text("id", event.id).text("type", event.type).raw("data", event.json).take());
    print_out("\n");
  } else {
    const std::string& who = event.sandbox_name.empty() ? event.sandbox_id : event.sandbox_name;
    std::string line = fmt::format("{}  {}  {}", event.at, who, event.type);
    if (!event.reason.empty()) line += "  " + event.reason;
    print_out(printable(line) + "\n");
  }
  return fflush(stdout) == 0;
}

bool may_pass(const Error& error) {
  return is_server_away(error) || error.code() == ErrorCode::Timeout || error.retry_after_ms() != 0;
}

// To the stream's end. `request` then asks for what comes after it.
Result<void> print_events(const Globals& globals, EventReader reader, EventsRequest& request) {
  while (true) {
    auto event = reader.next();
    request.since = reader.position();
    if (!event) return fail(std::move(event).error());
    if (!*event) return {};
    // A name may go with its sandbox, or to another.
    if (!request.sandbox.empty()) request.sandbox = (*event)->sandbox_id;
    if (!print_event(globals, **event)) return fail_errno("write", "standard output");
  }
}

// For ever, as a server that is restarted comes back; but the first connection must succeed.
Result<int> follow(const Globals& globals, Client& client, EventsRequest request) {
  auto reader = client.events(request);
  if (!reader) return fail(std::move(reader).error());
  auto pause = kFirstPause;
  while (true) {
    if (reader) {
      auto printed = print_events(globals, std::move(*reader), request);
      if (!printed && !may_pass(printed.error())) return fail(std::move(printed).error());
      pause = kFirstPause;
    } else if (!may_pass(reader.error())) {
      return fail(std::move(reader).error());
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kLongestPause);
    reader = client.events(request);
  }
}

}  // namespace

Command events_command() {
  auto request = std::make_shared<EventsRequest>();
  Command command;
  command.name = "events";
  command.summary = "Show what has happened to sandboxes, or follow what happens";
  command.examples = {"atoll events web", "atoll events -f",
                      "atoll events -f --since 1042 --json | jq -r .type"};
  command.options = {
      {"-f,--follow", "", "go on with what happens; without SANDBOX, from now on",
       &request->follow},
      {"--since", "ID", "only those after this one (its id in --json)", &request->since}};
  command.arguments = {{"SANDBOX", "id or name; of one that is gone, its id (default: all)",
                        &request->sandbox, false, Complete::Sandbox}};
  command.run = [request](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      if (request->follow) return follow(globals, client, *request);
      ATOLL_ASSIGN(EventReader reader, client.events(*request));
      ATOLL_TRY(print_events(globals, std::move(reader), *request));
      return 0;
    });
  };
  return command;
}

}  // namespace atl::cli
