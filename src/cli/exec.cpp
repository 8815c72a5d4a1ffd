#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/exec_options.h"
#include "cli/json_out.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "cli/units.h"

namespace atl::cli {
namespace {

// Programs choose their colours and key codes by these.
void pass_terminal_kind(SpawnRequest& request) {
  for (const char* name : {"TERM", "COLORTERM"}) {
    const char* value = getenv(name);
    if (value != nullptr && *value != '\0') request.env.try_emplace(name, value);
  }
  request.env.try_emplace("TERM", "xterm-256color");
}

SpawnRequest to_request(const ExecOptions& options) {
  SpawnRequest request;
  request.argv = options.command;
  request.env = options.env;
  request.cwd = options.cwd;
  request.user = options.user;
  request.timeout = options.timeout;
  request.stdin_open = options.interactive;
  request.pty = options.terminal;
  if (options.terminal) {
    TerminalSize size = terminal_size(isatty(STDIN_FILENO) == 1 ? STDIN_FILENO : STDOUT_FILENO);
    request.cols = size.cols;
    request.rows = size.rows;
    pass_terminal_kind(request);
  }
  return request;
}

int run_exec(Client& client, const std::string& sandbox, const ExecOptions& options) {
  SignalWatch signals;
  auto end = exec_in(client, signals, sandbox, options);
  if (!end) return report_start(end.error(), options.command[0], client.url());
  if (end->kind == AttachEnd::Kind::NoReader) {
    // What SIGPIPE would have done to a local command.
    [[maybe_unused]] auto ignored = client.kill(sandbox, end->pid, "SIGPIPE");
  }
  if (end->kind == AttachEnd::Kind::Detached && !options.terminal) {
    fmt::print(stderr, "atoll: detached from process {} (end it with 'atoll kill {} {}')\n",
               end->pid, sandbox, end->pid);
  }
  explain_kill(client, sandbox, end->exit_code);
  return end->exit_code;
}

// What it printed and how it ended, in one object at its end.
int run_for_json(Client& client, const std::string& sandbox, const ExecOptions& options) {
  auto done = client.exec(sandbox, to_request(options));
  if (!done) return report_start(done.error(), options.command[0], client.url());
  print_json(JsonObject()
                 .number("exitCode", done->exit_code)
                 .text("stdout", done->stdout_data)
                 .text("stderr", done->stderr_data)
                 .number("stdoutLost", static_cast<int64_t>(done->stdout_lost))
                 .number("stderrLost", static_cast<int64_t>(done->stderr_lost))
                 .flag("timedOut", done->timed_out)
                 .number("durationMicroseconds", done->duration.count())
                 .take());
  return done->exit_code;
}

// Leaves the command running and prints its id, for 'atoll ps', 'logs' and 'kill'.
int run_detached(Client& client, bool json, const std::string& sandbox,
                 const ExecOptions& options) {
  auto process = client.spawn(sandbox, to_request(options));
  if (!process) return report_start(process.error(), options.command[0], client.url());
  if (json) {
    print_json(to_json(*process));
  } else {
    print_out(fmt::format("{}\n", process->pid));
  }
  return 0;
}

}  // namespace

Option env_flag(std::map<std::string, std::string>& env) {
  ReadValue read = [&env](const std::string& text) -> Result<void> {
    ATOLL_ASSIGN(auto pair, parse_assignment(text));
    env[pair.first] = pair.second;
    return {};
  };
  return {"-e,--env", "KEY=VALUE", "set an environment variable (repeatable)", read};
}

std::vector<Option> exec_flags(ExecOptions& options) {
  ReadValue read_timeout = [&options](const std::string& text) -> Result<void> {
    ATOLL_ASSIGN(options.timeout, parse_duration(text));
    return {};
  };
  return {
      {"-i,--interactive", "", "pass standard input on to the command", &options.interactive},
      {"-t,--tty", "", "give the command a terminal; -it for a shell", &options.terminal},
      env_flag(options.env),
      {"-w,--cwd", "DIR", "where it runs (default: /workspace)", &options.cwd},
      {"-u,--user", "USER", "who it runs as, by name or id", &options.user},
      {"--timeout", "TIME", "kill it after so long, such as 30s; exit code 124", read_timeout},
  };
}

Result<ExecEnd> exec_in(Client& client, SignalWatch& signals, const std::string& sandbox,
                        const ExecOptions& options) {
  AttachSettings settings;
  settings.sandbox = sandbox;
  settings.input = options.interactive;
  settings.terminal = options.terminal;
  ATOLL_ASSIGN(settings.process, client.spawn(sandbox, to_request(options)));
  ATOLL_ASSIGN(AttachEnd end, attach_streams(client, signals, settings));
  return ExecEnd{end.exit_code, end.kind, settings.process.pid};
}

void explain_kill(Client& client, const std::string& sandbox, int exit_code) {
  if (exit_code != 128 + SIGKILL) return;
  auto usage = client.usage(sandbox);
  if (!usage || !usage->present || usage->present->oom_kills == 0) return;
  fmt::print(stderr,
             "atoll: the sandbox has run out of memory (allow more with --memory at 'atoll create' "
             "and 'atoll update'; 'atoll usage {}' shows what it takes)\n",
             sandbox);
}

Command exec_command() {
  struct State {
    std::string sandbox;
    ExecOptions options;
    bool detach = false;
  };
  auto state = std::make_shared<State>();
  Command command;
  command.name = "exec";
  command.summary = "Run a command in a sandbox; the exit code is the command's";
  command.examples = {"atoll exec web -- sh -c 'echo hi; exit 3'", "atoll exec -it web -- bash",
                      "tar c . | atoll exec -i web -- tar x -C /workspace",
                      "atoll exec -d web -- python3 -m http.server 3000",
                      "atoll exec -u nobody -e A=1 --timeout 30s web -- ./task"};
  command.options = exec_flags(state->options);
  command.options.push_back(
      {"-d,--detach", "", "leave it running and print its id", &state->detach});
  command.arguments = {{"SANDBOX", "id or name", &state->sandbox, true, Complete::Sandbox}};
  command.rest = &state->options.command;
  command.rest_name = "COMMAND [ARG...]";
  command.run = [state](const Globals& globals) {
    if (state->options.command.empty()) {
      return report_usage("no command to run (write it after '--': atoll exec " + state->sandbox +
                          " -- ls)");
    }
    bool typed = state->options.interactive || state->options.terminal;
    if (typed && state->detach) {
      return report_usage(
          "nobody is there to type for a command that is left running (drop -d, or -i and -t)");
    }
    if (typed && globals.json) {
      return report_usage("--json prints at the end what was printed (drop -i and -t)");
    }
    return with_client(globals, [&](Client& client) {
      if (state->detach) return run_detached(client, globals.json, state->sandbox, state->options);
      if (globals.json) return run_for_json(client, state->sandbox, state->options);
      return run_exec(client, state->sandbox, state->options);
    });
  };
  return command;
}

}  // namespace atl::cli
