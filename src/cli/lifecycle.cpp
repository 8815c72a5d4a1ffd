// Verbs that change a whole sandbox, or several.
#include <fmt/format.h>
#include <stdio.h>

#include <memory>

#include "cli/json_out.h"
#include "cli/report.h"
#include "cli/sandbox_options.h"

namespace atl::cli {
namespace {

struct ManySandboxes {
  std::vector<std::string> names;
};

// Does one thing to each, and goes on after a failure.
template <class Action>
int for_each_sandbox(const Globals& globals, const std::vector<std::string>& names,
                     const Action& action) {
  auto client = make_client(globals);
  if (!client) return report(client.error(), globals.url);
  int code = 0;
  for (const std::string& name : names) {
    Result<int> done = action(*client, name);
    if (!done) code = report(done.error(), client->url());
  }
  return code;
}

Command change_command(std::string name, std::string summary, std::vector<std::string> examples,
                       Result<Sandbox> (Client::*change)(std::string_view)) {
  auto many = std::make_shared<ManySandboxes>();
  Command command;
  command.name = std::move(name);
  command.summary = std::move(summary);
  command.examples = std::move(examples);
  command.arguments = {{"SANDBOX", "ids or names", &many->names, true, Complete::Sandbox}};
  command.run = [many, change](const Globals& globals) {
    return for_each_sandbox(globals, many->names, [&](Client& client, const std::string& sandbox) {
      return print_sandbox(globals, (client.*change)(sandbox));
    });
  };
  return command;
}

}  // namespace

Command stop_command() {
  return change_command(
      "stop", "End the processes of sandboxes; their files stay",
      {"atoll stop web", "atoll stop web && atoll start web      # a fresh start, same files"},
      &Client::stop);
}
Command start_command() {
  return change_command("start", "Start stopped or failed sandboxes again, with their files",
                        {"atoll start web"}, &Client::resume);
}
Command pause_command() {
  struct State : ManySandboxes {
    bool disk = false;
  };
  auto state = std::make_shared<State>();
  Command command;
  command.name = "pause";
  command.summary = "Freeze the processes of sandboxes where they are";
  command.examples = {"atoll pause web",
                      "atoll pause web --disk      # keeps them in a file: they take no memory"};
  command.options = {{"--disk", "", "keep them in a file, until 'atoll resume'", &state->disk}};
  command.arguments = {{"SANDBOX", "ids or names", &state->names, true, Complete::Sandbox}};
  command.run = [state](const Globals& globals) {
    return for_each_sandbox(globals, state->names, [&](Client& client, const std::string& name) {
      return print_sandbox(globals, state->disk ? client.pause_to_disk(name) : client.pause(name));
    });
  };
  return command;
}
Command unpause_command() {
  return change_command("unpause", "Let paused sandboxes go on", {"atoll unpause web"},
                        &Client::unpause);
}

Command resume_command() {
  return change_command("resume", "Let sandboxes go on, whether they are paused or stopped",
                        {"atoll resume web"}, &Client::resume);
}

Command rm_command() {
  struct State : ManySandboxes {
    bool force = false;
  };
  auto state = std::make_shared<State>();
  Command command;
  command.name = "rm";
  command.summary = "Remove sandboxes with all that is in them";
  command.examples = {"atoll rm web", "atoll ls -q | xargs -r atoll rm"};
  command.options = {{"-f,--force", "", "no error where one does not exist", &state->force}};
  command.arguments = {{"SANDBOX", "ids or names", &state->names, true, Complete::Sandbox}};
  command.run = [state](const Globals& globals) {
    auto remove = [&](Client& client, const std::string& name) -> Result<int> {
      auto removed = client.remove(name);
      bool missing = !removed && removed.error().code() == ErrorCode::NotFound &&
                     removed.error().sys_errno() == 0;
      if (!removed && !(missing && state->force)) return fail(std::move(removed).error());
      if (globals.json)
        print_json(JsonObject().text("removed", name).take());
      else if (!globals.quiet)
        print_out(name + "\n");
      return 0;
    };
    return for_each_sandbox(globals, state->names, remove);
  };
  return command;
}

Command update_command() {
  struct State {
    std::string sandbox;
    UpdateRequest request;
    std::map<std::string, std::string> metadata;
  };
  auto state = std::make_shared<State>();
  Command command;
  command.name = "update";
  command.summary = "Change the limits, times or labels of a sandbox";
  command.examples = {"atoll update web --memory 1g --cpu 2", "atoll update web --timeout never"};
  command.options = limit_flags(state->request.limits);
  command.options.push_back(lifetime_flag(state->request.max_lifetime));
  command.options.push_back(idle_flag(state->request.idle_timeout));
  command.options.push_back(delete_after_flag(state->request.delete_after_stopped));
  command.options.push_back(metadata_flag(state->metadata));
  command.arguments = {{"SANDBOX", "id or name", &state->sandbox, true, Complete::Sandbox}};
  command.run = [state](const Globals& globals) {
    if (!state->metadata.empty()) state->request.metadata = state->metadata;
    const UpdateRequest& request = state->request;
    if (request.limits == Limits() && !request.max_lifetime && !request.idle_timeout &&
        !request.delete_after_stopped && !request.metadata) {
      return report_usage("nothing to change (say what, such as: atoll update " + state->sandbox +
                          " --memory 1g)");
    }
    return with_client(globals, [&](Client& client) {
      return print_sandbox(globals, client.update(state->sandbox, state->request));
    });
  };
  return command;
}

}  // namespace atl::cli
