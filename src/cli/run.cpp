#include <fmt/format.h>

#include "base/scope_exit.h"
#include "cli/exec_options.h"
#include "cli/report.h"
#include "cli/sandbox_options.h"

namespace atl::cli {
namespace {

// So that a sandbox whose client was killed does not stay for ever.
constexpr std::chrono::seconds kGrace{60};

struct RunOptions {
  ExecOptions exec;
  CreateRequest sandbox;
};

CreateRequest to_request(const RunOptions& options) {
  CreateRequest request = options.sandbox;
  request.ephemeral = true;
  auto timeout = options.exec.timeout;
  if (timeout.count() != 0)
    request.max_lifetime = std::chrono::ceil<std::chrono::seconds>(timeout) + kGrace;
  return request;
}

int run_in_new_sandbox(const Globals& globals, const RunOptions& options) {
  auto client = make_client(globals);
  if (!client) return report(client.error(), globals.url);
  SignalWatch signals;  // from here on nothing may leave the sandbox behind
  auto sandbox = client->create(to_request(options));
  if (!sandbox) return report(sandbox.error(), client->url());
  ScopeExit remove([&] {
    auto removed = client->remove(sandbox->id);
    if (removed || removed.error().code() == ErrorCode::NotFound) return;
    fmt::print(stderr, "atoll: {} was not removed: {} (try 'atoll rm {}')\n", sandbox->id,
               removed.error().message(), sandbox->id);
  });
  auto end = exec_in(*client, signals, sandbox->id, options.exec);
  if (!end) return report_start(end.error(), options.exec.command[0], client->url());
  explain_kill(*client, sandbox->id, end->exit_code);
  return end->exit_code;
}

}  // namespace

Command run_command() {
  auto options = std::make_shared<RunOptions>();
  Command command;
  command.name = "run";
  command.summary = "Run a command in a new sandbox and remove it afterwards";
  command.examples = {"atoll run -- python3 -c 'print(6*7)'", "atoll run -it -- bash",
                      "atoll run --memory 512m --cpu 0.5 --timeout 30s -- ./untrusted",
                      "echo 'print(1)' | atoll run -i -- python3 -"};
  command.options = exec_flags(options->exec);
  CreateRequest& sandbox = options->sandbox;
  command.options.push_back(template_flag(sandbox.template_name));
  command.options.push_back(profile_flag(sandbox.profile));
  for (Option& option : limit_flags(sandbox.limits)) command.options.push_back(std::move(option));
  command.options.push_back(disk_flag(sandbox.limits));
  command.rest = &options->exec.command;
  command.rest_name = "COMMAND [ARG...]";
  command.run = [options](const Globals& globals) {
    if (options->exec.command.empty()) {
      return report_usage("no command to run (write it after '--': atoll run -- ls)");
    }
    if (globals.json) {
      return report_usage("run prints what the command prints ('atoll exec --json' tells of it)");
    }
    return run_in_new_sandbox(globals, *options);
  };
  return command;
}

}  // namespace atl::cli
