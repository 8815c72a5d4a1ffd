// ps, logs, kill, wait.
#include <errno.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <memory>

#include "cli/attach_loop.h"
#include "cli/json_out.h"
#include "cli/reattach.h"
#include "cli/report.h"
#include "cli/table.h"
#include "cli/units.h"

namespace atl::cli {
namespace {

struct ProcessArguments {
  std::string sandbox;
  int pid = 0;
};

std::vector<Argument> process_arguments(ProcessArguments& into) {
  return {{"SANDBOX", "id or name", &into.sandbox, true, Complete::Sandbox},
          {"PROC", "process id, from 'atoll ps'", &into.pid}};
}

std::string state_of(const ProcessInfo& process) {
  if (process.running) return "running";
  if (process.timed_out) return "timed out";
  if (process.exit_signal != 0) {
    const char* name = sigabbrev_np(process.exit_signal);
    return fmt::format("killed ({})", name == nullptr ? "?" : name);
  }
  return fmt::format("exited ({})", process.exit_code);
}

Colour colour_of(const ProcessInfo& process) {
  if (process.running) return Colour::Green;
  return process.exit_code == 0 ? Colour::Dim : Colour::Red;
}

void print_table(const std::vector<ProcessInfo>& processes) {
  using Kind = Column::Kind;
  Table table({{"PID", Kind::Right},
               {"STATUS"},
               {"USER"},
               {"AGE", Kind::Right},
               {"CPU", Kind::Right},
               {"OUTPUT", Kind::Right},
               {"COMMAND", Kind::Elastic}});
  for (const ProcessInfo& process : processes) {
    auto age = std::chrono::milliseconds(now_ms() - static_cast<int64_t>(process.started_at_ms));
    table.add({Cell(std::to_string(process.pid)), Cell(state_of(process), colour_of(process)),
               Cell(printable(process.user)), Cell(format_age(age)),
               Cell(process.running ? "-" : format_cpu(process.cpu_us)),  // known at its end
               Cell(format_size(process.stdout_bytes + process.stderr_bytes)),
               Cell(printable(process.label))});
  }
  table.print();
}

Result<void> copy_output(Client& client, const ProcessArguments& at, Stream stream) {
  OutputRequest request;
  request.stream = stream;
  ATOLL_ASSIGN(OutputReader reader, client.output(at.sandbox, at.pid, request));
  std::vector<char> block(64 * 1024);
  FILE* to = stream == Stream::Stdout ? stdout : stderr;
  while (true) {
    ATOLL_ASSIGN(size_t got, reader.read(block));
    if (got == 0) return {};
    if (fwrite(block.data(), 1, got, to) != got) return fail_errno("write", "the output");
  }
}

void count_output(OutputOffsets& offsets, const ProcessEvent& event) {
  uint64_t& offset = event.stream == Stream::Stdout ? offsets.stdout_offset : offsets.stderr_offset;
  if (event.kind == ProcessEvent::Kind::Output) offset += event.bytes;
  if (event.kind == ProcessEvent::Kind::Lost) offset += event.lost;
}

// What there is now of a process that goes on; else all of it, in the order it came.
Result<int> show_logs(Client& client, const ProcessArguments& at, bool follow) {
  ATOLL_ASSIGN(ProcessInfo process, client.process(at.sandbox, at.pid));
  if (process.running && !follow) {
    ATOLL_TRY(copy_output(client, at, Stream::Stdout));
    ATOLL_TRY(copy_output(client, at, Stream::Stderr));
    return 0;
  }
  ATOLL_ASSIGN(Attachment attachment, client.attach(at.sandbox, at.pid));
  ReattachPlan plan{.sandbox = at.sandbox, .pid = at.pid, .offsets = {}};
  while (true) {
    auto event = attachment.next();
    if (!event) {
      ATOLL_ASSIGN(attachment, reattach(client, plan, std::move(event).error()));
      continue;
    }
    count_output(plan.offsets, *event);
    if (event->kind == ProcessEvent::Kind::Exited) return 0;
    if (event->kind == ProcessEvent::Kind::Lost) {
      fmt::print(stderr, "atoll: {} bytes are no longer kept\n", event->lost);
      continue;
    }
    if (event->kind != ProcessEvent::Kind::Output) continue;
    FILE* to = event->stream == Stream::Stdout ? stdout : stderr;
    fwrite(event->data.data(), 1, event->data.size(), to);
    // Both: what came on the other stream is waiting, too.
    if (attachment.pending()) continue;
    if (fflush(stdout) != 0 || fflush(stderr) != 0) return fail_errno("write", "the output");
  }
}

void print_event(const ProcessEvent& event) {
  JsonObject line;
  if (event.kind == ProcessEvent::Kind::Exited) {
    line.text("type", "exit").raw("process", to_json(event.process));
  } else {
    bool lost = event.kind == ProcessEvent::Kind::Lost;
    line.text("type", lost ? "lost" : "output")
        .text("stream", event.stream == Stream::Stdout ? "stdout" : "stderr")
        .number("offset", static_cast<int64_t>(event.offset));
    if (lost)
      line.number("bytes", static_cast<int64_t>(event.lost));
    else
      line.text("data", event.data).text("timestamp", event.timestamp);
  }
  print_out(line.take() + "\n");
  fflush(stdout);
}

// Times and streams need the server's events, which are text.
Result<int> show_log_events(Client& client, const ProcessArguments& at, bool follow) {
  LogRequest request;
  request.follow = follow;
  ATOLL_ASSIGN(LogReader reader, client.logs(at.sandbox, at.pid, request));
  ReattachPlan plan{.sandbox = at.sandbox, .pid = at.pid, .offsets = {}};
  while (true) {
    auto event = reader.next();
    if (!event && follow) {
      ATOLL_ASSIGN(reader, reopen_logs(client, plan, std::move(event).error()));
      continue;
    }
    if (!event) return fail(std::move(event).error());
    if (!*event) return 0;
    count_output(plan.offsets, **event);
    print_event(**event);
  }
}

// "TERM", "SIGTERM" or "15".
Result<std::string> signal_name(const std::string& text) {
  for (int number = 1; number < NSIG; number++) {
    const char* abbreviation = sigabbrev_np(number);
    if (abbreviation == nullptr) continue;
    std::string name = std::string("SIG") + abbreviation;
    if (text == name || text == abbreviation || text == std::to_string(number)) return name;
  }
  return fail(ErrorCode::InvalidArgument, "'" + text + "' is not a signal, such as TERM or 15");
}

}  // namespace

Command ps_command() {
  auto sandbox = std::make_shared<std::string>();
  Command command;
  command.name = "ps";
  command.summary = "List the commands that were started in a sandbox";
  command.examples = {"atoll ps web", "atoll ps web --json | jq '.[] | select(.running)'"};
  command.arguments = {{"SANDBOX", "id or name", sandbox.get(), true, Complete::Sandbox}};
  command.run = [sandbox](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_ASSIGN(auto processes, client.processes(*sandbox));
      if (globals.json)
        print_json(to_json_array(processes));
      else if (!globals.quiet)
        print_table(processes);
      else
        for (const ProcessInfo& process : processes) print_out(fmt::format("{}\n", process.pid));
      return 0;
    });
  };
  return command;
}

Command logs_command() {
  struct State : ProcessArguments {
    bool follow = false;
  };
  auto state = std::make_shared<State>();
  Command command;
  command.name = "logs";
  command.summary = "Print what a command has written";
  command.examples = {"atoll logs web 12", "atoll logs -f web 12", "atoll logs web 12 --json"};
  command.options = {
      {"-f,--follow", "", "go on with what it writes until it ends", &state->follow}};
  command.arguments = process_arguments(*state);
  command.run = [state](const Globals& globals) {
    return with_client(globals, [&](Client& client) {
      return globals.json ? show_log_events(client, *state, state->follow)
                          : show_logs(client, *state, state->follow);
    });
  };
  return command;
}

Command kill_command() {
  struct State : ProcessArguments {
    std::string signal = "SIGKILL";
    bool only = false;
  };
  auto state = std::make_shared<State>();
  Command command;
  command.name = "kill";
  command.summary = "Send a signal to a command and all it started";
  command.examples = {"atoll kill web 12", "atoll kill -s TERM web 12"};
  ReadValue read_signal = [state = state.get()](const std::string& text) -> Result<void> {
    ATOLL_ASSIGN(state->signal, signal_name(text));
    return {};
  };
  command.options = {
      {"-s,--signal", "SIGNAL", "which, such as TERM or 15 (default: KILL)", read_signal},
      {"--only", "", "only to the command itself, not to what it started", &state->only}};
  command.arguments = process_arguments(*state);
  command.run = [state](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      KillScope scope = state->only ? KillScope::Process : KillScope::Tree;
      ATOLL_TRY(client.kill(state->sandbox, state->pid, state->signal, scope));
      if (globals.json) {
        print_json(JsonObject().number("pid", state->pid).text("signal", state->signal).take());
      }
      return 0;
    });
  };
  return command;
}

Command wait_command() {
  struct State : ProcessArguments {
    std::chrono::milliseconds timeout{0};
  };
  auto state = std::make_shared<State>();
  Command command;
  command.name = "wait";
  command.summary = "Wait for a command's end and exit as it did";
  command.examples = {"atoll wait web 12 && echo fine", "atoll wait --timeout 30s web 12"};
  ReadValue read_timeout = [state = state.get()](const std::string& text) -> Result<void> {
    ATOLL_ASSIGN(state->timeout, parse_duration(text));
    return {};
  };
  command.options = {
      {"--timeout", "TIME", "give up after so long, such as 30s; exit code 125", read_timeout}};
  command.arguments = process_arguments(*state);
  command.run = [state](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_ASSIGN(ProcessInfo process, client.wait(state->sandbox, state->pid, state->timeout));
      if (globals.json) print_json(to_json(process));
      return process.exit_code;
    });
  };
  return command;
}

}  // namespace atl::cli
