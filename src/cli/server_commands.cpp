// serve, system, version.
#include <fmt/format.h>

#include <memory>

#include "base/version.h"
#include "cli/json_out.h"
#include "cli/report.h"
#include "serve/serve.h"

namespace atl::cli {

static std::string defaulted(std::string_view help, unsigned value) {
  return fmt::format("{} (default: {})", help, value);
}

Command serve_command() {
  auto arguments = std::make_shared<ServeArguments>();
  Command command;
  command.name = "serve";
  command.summary = "Run the server (as root)";
  command.examples = {"sudo atoll serve",
                      "sudo atoll serve --listen none --data-dir /srv/atoll --pool 8"};
  ServeArguments& to = *arguments;
  command.options = {
      {"--data-dir",
       "DIR",
       "for templates, files and state (default: " + to.data_dir + ")",
       &to.data_dir,
       {},
       Complete::File},
      {"--run-dir",
       "DIR",
       "for its sockets (default: " + to.run_dir + ")",
       &to.run_dir,
       {},
       Complete::File},
      {"--listen", "ADDR:PORT", "HTTP beside the socket, or none (default: " + to.listen + ")",
       &to.listen},
      {"--cgroup", "NAME", "control group of all sandboxes (default: " + to.cgroup + ")",
       &to.cgroup},
      {"--reserve", "N", defaulted("blank slots kept ready, for any template", to.reserve),
       &to.reserve},
      {"--pool", "N", defaulted("whole sandboxes kept ready, more under demand", to.pool),
       &to.pool},
      {"--on-exit",
       "WHAT",
       "keep sandboxes running (default) or stop them",
       &to.on_exit,
       {"keep", "stop"}},
      {"--ready-fd", "N", "write \"ready\" to this descriptor once it serves", &to.ready_fd},
      {"--log-level",
       "LEVEL",
       "debug, info (default), warning or error",
       &to.log_level,
       {"debug", "info", "warning", "error"}},
      {"--user", "NAME", "account of the part without privileges (default: " + to.user + ")",
       &to.user}};
  command.run = [arguments](const Globals&) { return run_serve(*arguments); };
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
       {run_command,     create_command,    ls_command,      inspect_command, exec_command,
        ps_command,      logs_command,      kill_command,    wait_command,    cp_command,
        cat_command,     files_command,     search_command,  watch_command,   stop_command,
        start_command,   pause_command,     unpause_command, update_command,  usage_command,
        rm_command,      template_command,  system_command,  doctor_command,  serve_command,
        version_command, completion_command}) {
    root.commands.push_back(make());
  }
  return root;
}

}  // namespace atl::cli
