// serve, system, version.
#include <fmt/format.h>

#include <memory>

#include "base/version.h"
#include "cli/code_command.h"
#include "cli/config_options.h"
#include "cli/json_out.h"
#include "cli/report.h"
#include "serve/serve.h"

namespace atl::cli {

Command serve_command() {
  auto inputs = std::make_shared<config::Inputs>();
  auto ready_fd = std::make_shared<int>(-1);
  Command command;
  command.name = "serve";
  command.summary = "Run the server (as root)";
  command.examples = {"sudo atoll serve",
                      "sudo atoll serve --listen none --data-dir /srv/atoll --pool 8",
                      "sudo atoll serve --config ./config.toml"};
  command.options = config_options(*inputs);
  command.options.push_back(
      {"--ready-fd", "N", "write \"ready\" to this descriptor once it serves", ready_fd.get()});
  command.run = [inputs, ready_fd](const Globals&) {
    auto loaded = config::load_from_environment(*inputs);
    if (!loaded) return report(loaded.error());
    loaded->config.ready_fd = *ready_fd;
    return serve::run_serve(loaded->config);
  };
  return command;
}

Command system_command() {
  Command command;
  command.name = "system";
  command.summary = "Show the server's version, backend and state";
  command.examples = {"atoll system", "atoll system --json"};
  command.run = [](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_ASSIGN(SystemInfo system, client.system());
      if (globals.json) {
        print_json(system.json);
        return 0;
      }
      print_out(fmt::format("Server     {}\nVersion    {}\nBackend    {}\n", client.url(),
                            system.version, system.backend));
      print_out(fmt::format("Sandboxes  {}\n", system.sandboxes));
      for (const auto& [name, ready] : system.pool) {
        print_out(fmt::format("Pool       {}: {} ready\n", name, ready));
      }
      for (const std::string& lost : system.degraded) {
        print_out(fmt::format("Degraded   {}\n", lost));
      }
      return 0;
    });
  };
  return command;
}

Command version_command() {
  Command command;
  command.name = "version";
  command.summary = "Print the version";
  command.examples = {"atoll version", "atoll version --json"};
  command.run = [](const Globals& globals) {
    if (globals.json)
      print_json(JsonObject().text("version", kVersion).take());
    else
      print_out(fmt::format("atoll {}\n", kVersion));
    return 0;
  };
  return command;
}

Command all_commands() {
  Command root;
  root.name = "atoll";
  root.summary = "Isolated Linux machines (sandboxes) on your own hardware.";
  root.examples = {"atoll run -- python3 -c 'print(6*7)'", "atoll create --name web --memory 512m",
                   "atoll exec -it web -- bash", "atoll cp ./dir web:/workspace/dir"};
  for (auto make :
       {run_command,      create_command,     ls_command,       inspect_command, exec_command,
        code_command,     ps_command,         logs_command,     kill_command,    wait_command,
        cp_command,       cat_command,        files_command,    search_command,  watch_command,
        stop_command,     start_command,      pause_command,    unpause_command, resume_command,
        snapshot_command, checkpoint_command, restore_command,  fork_command,    diff_command,
        history_command,  undo_command,       update_command,   usage_command,   rm_command,
        events_command,   token_command,      template_command, storage_command, system_command,
        doctor_command,   serve_command,      key_command,      secret_command,  net_command,
        port_command,     whoami_command,     config_command,   backup_command,  audit_command,
        version_command,  completion_command}) {
    root.commands.push_back(make());
  }
  return root;
}

}  // namespace atl::cli
