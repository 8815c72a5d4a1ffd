// Checkpoints: the files and the processes of sandboxes, kept together.
#include <fmt/format.h>

#include <memory>

#include "cli/json_out.h"
#include "cli/report.h"
#include "cli/snapshot_commands.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/units.h"

namespace atl::cli {
namespace {

Command take_command() {
  struct State {
    std::string sandbox;
    SnapshotRequest request;
    bool stop = false;
  };
  auto state = std::make_shared<State>();
  ReadValue keep = [state](const std::string& text) -> Result<void> {
    ATOLL_ASSIGN(auto time, parse_duration(text));
    state->request.keep = std::chrono::ceil<std::chrono::seconds>(time);
    return {};
  };
  Command command;
  command.name = "create";
  command.summary = "Keep the files and the processes of a sandbox as they are now";
  command.examples = {"atoll checkpoint web -m 'model loaded'",
                      "atoll checkpoint web --stop && atoll restore web ckpt-91b7e0aa53cd"};
  command.options = {
      {"-m,--message", "TEXT", "what it is", &state->request.message},
      {"-t,--tag", "TAG", "another name for it (repeatable)", &state->request.tags},
      {"--keep", "TIME", "remove it after so long, such as 7d (default: never)", keep},
      {"--stop", "", "end the processes once they are kept", &state->stop}};
  command.arguments = {{"SANDBOX", "id or name", &state->sandbox, true, Complete::Sandbox}};
  command.run = [state](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_ASSIGN(CheckpointInfo made,
                   client.checkpoint(state->sandbox, state->request, !state->stop));
      if (globals.json)
        print_json(made.json);
      else
        print_out(made.id + "\n");
      return 0;
    });
  };
  return command;
}

void print_table(const std::vector<CheckpointInfo>& checkpoints) {
  Table table({{"CHECKPOINT"},
               {"SANDBOX"},
               {"CREATED"},
               {"MEMORY"},
               {"STOOD STILL"},
               {"TAGS"},
               {"MESSAGE", Column::Kind::Elastic}});
  for (const CheckpointInfo& checkpoint : checkpoints) {
    const std::string& of =
        checkpoint.sandbox_name.empty() ? checkpoint.sandbox : checkpoint.sandbox_name;
    auto still = fmt::format("{:.1f} ms", static_cast<double>(checkpoint.frozen_us) / 1000);
    table.add({Cell(checkpoint.id), Cell(of), Cell(checkpoint.created_at),
               Cell(format_size(checkpoint.bytes)), Cell(still),
               Cell(fmt::format("{}", fmt::join(checkpoint.tags, ","))), Cell(checkpoint.message)});
  }
  table.print();
}

Command list_command() {
  auto sandbox = std::make_shared<std::string>();
  Command command;
  command.name = "ls";
  command.summary = "List checkpoints, oldest first";
  command.examples = {"atoll checkpoint ls web", "atoll checkpoint ls --json"};
  command.arguments = {
      {"SANDBOX", "only this one's (default: all)", sandbox.get(), false, Complete::Sandbox}};
  command.run = [sandbox](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_ASSIGN(auto checkpoints, client.checkpoints(*sandbox));
      if (globals.json) {
        print_json(join_json(checkpoints));
      } else if (globals.quiet) {
        for (const CheckpointInfo& checkpoint : checkpoints) print_out(checkpoint.id + "\n");
      } else {
        print_table(checkpoints);
      }
      return 0;
    });
  };
  return command;
}

Command remove_command() {
  return remove_kept_command("checkpoints", "CHECKPOINT", "atoll checkpoint rm ckpt-91b7e0aa53cd",
                             &Client::remove_checkpoint);
}

}  // namespace

Command checkpoint_command() {
  Command command;
  command.name = "checkpoint";
  command.summary = "Keep what runs in sandboxes, to go on from there or to copy it";
  command.examples = {"atoll checkpoint web -m 'model loaded'",
                      "atoll restore web ckpt-91b7e0aa53cd",
                      "atoll fork web --checkpoint ckpt-91b7e0aa53cd --count 10"};
  command.commands.push_back(take_command());
  command.commands.push_back(list_command());
  command.commands.push_back(remove_command());
  command.usual = "create";
  return command;
}

}  // namespace atl::cli
