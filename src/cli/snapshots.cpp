// Snapshots of sandboxes, and what is made from them.
#include <fmt/format.h>

#include <memory>
#include <set>

#include "cli/json_out.h"
#include "cli/report.h"
#include "cli/sandbox_options.h"
#include "cli/snapshot_commands.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/units.h"

namespace atl::cli {
namespace {

std::string milliseconds(uint64_t us) {
  return fmt::format("{:.1f} ms", static_cast<double>(us) / 1000);
}

Command take_command() {
  struct State {
    std::string sandbox;
    SnapshotRequest request;
  };
  auto state = std::make_shared<State>();
  ReadValue keep = [state](const std::string& text) -> Result<void> {
    ATOLL_ASSIGN(auto time, parse_duration(text));
    state->request.keep = std::chrono::ceil<std::chrono::seconds>(time);
    return {};
  };
  Command command;
  command.name = "create";
  command.summary = "Keep the files of a sandbox as they are now, while it runs";
  command.examples = {"atoll snapshot create web -m 'deps installed'",
                      "atoll snapshot create web --tag nightly --keep 7d"};
  command.options = {
      {"-m,--message", "TEXT", "what it is", &state->request.message},
      {"-t,--tag", "TAG", "another name for it (repeatable)", &state->request.tags},
      {"--keep", "TIME", "remove it after so long, such as 7d (default: never)", keep}};
  command.arguments = {{"SANDBOX", "id or name", &state->sandbox, true, Complete::Sandbox}};
  command.run = [state](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_ASSIGN(SnapshotInfo made, client.snapshot(state->sandbox, state->request));
      if (globals.json)
        print_json(made.json);
      else
        print_out(made.id + "\n");
      return 0;
    });
  };
  return command;
}

// A snapshot below the one that its sandbox stood on.
void add_branch(Table& table, const std::vector<SnapshotInfo>& all, const std::string& parent,
                const std::string& indent) {
  std::set<std::string> known;
  for (const SnapshotInfo& snapshot : all) known.insert(snapshot.id);
  for (const SnapshotInfo& snapshot : all) {
    std::string above = known.contains(snapshot.parent) ? snapshot.parent : "";
    if (above != parent) continue;
    std::string tags;
    for (const std::string& tag : snapshot.tags) tags += (tags.empty() ? "" : ",") + tag;
    const std::string& of =
        snapshot.sandbox_name.empty() ? snapshot.sandbox : snapshot.sandbox_name;
    table.add({Cell(indent + snapshot.id), Cell(of), Cell(snapshot.created_at),
               Cell(format_size(snapshot.bytes)), Cell(milliseconds(snapshot.frozen_us)),
               Cell(tags), Cell(snapshot.message)});
    add_branch(table, all, snapshot.id, indent + "  ");
  }
}

Command list_command() {
  auto sandbox = std::make_shared<std::string>();
  Command command;
  command.name = "ls";
  command.summary = "List snapshots, each below the one it followed";
  command.examples = {"atoll snapshot ls web", "atoll snapshot ls --json"};
  command.arguments = {
      {"SANDBOX", "only this one's (default: all)", sandbox.get(), false, Complete::Sandbox}};
  command.run = [sandbox](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_ASSIGN(auto snapshots, client.snapshots(*sandbox));
      if (globals.json) {
        print_json(join_json(snapshots));
        return 0;
      }
      if (globals.quiet) {
        for (const SnapshotInfo& snapshot : snapshots) print_out(snapshot.id + "\n");
        return 0;
      }
      Table table({{"SNAPSHOT"},
                   {"SANDBOX"},
                   {"CREATED"},
                   {"SIZE"},
                   {"STOOD STILL"},
                   {"TAGS"},
                   {"MESSAGE", Column::Kind::Elastic}});
      add_branch(table, snapshots, "", "");
      table.print();
      return 0;
    });
  };
  return command;
}

Command remove_command() {
  return remove_kept_command("snapshots", "SNAPSHOT", "atoll snapshot rm snap-4f1c09d2a7be",
                             &Client::remove_snapshot);
}

}  // namespace

Command snapshot_command() {
  Command command;
  command.name = "snapshot";
  command.summary = "Keep the state of sandboxes, to return to it or to start others from it";
  command.examples = {"atoll snapshot create web -m 'deps installed'",
                      "atoll create --from-snapshot snap-4f1c09d2a7be --name other"};
  command.commands.push_back(take_command());
  command.commands.push_back(list_command());
  command.commands.push_back(remove_command());
  command.commands.push_back(prune_snapshots_command());
  command.commands.push_back(export_snapshot_command());
  command.commands.push_back(import_snapshot_command());
  return command;
}

Command restore_command() {
  struct State {
    std::string sandbox, snapshot;
    uint32_t before = 0;
  };
  auto state = std::make_shared<State>();
  Command command;
  command.name = "restore";
  command.summary = "Return a sandbox to a snapshot, or with its processes to a checkpoint";
  command.examples = {"atoll restore web snap-4f1c09d2a7be      # what runs in it ends",
                      "atoll restore web ckpt-91b7e0aa53cd      # what ran then goes on",
                      "atoll restore web --to 3"};
  command.options = {
      {"--to", "N", "the state before command N of 'atoll history'", &state->before}};
  command.arguments = {{"SANDBOX", "id or name", &state->sandbox, true, Complete::Sandbox},
                       {"SNAPSHOT", "id or tag, also of a checkpoint", &state->snapshot, false}};
  command.run = [state](const Globals& globals) {
    if (state->snapshot.empty() == (state->before == 0)) {
      return report_usage(
          "name a snapshot, or a command with --to (atoll restore SANDBOX SNAPSHOT)");
    }
    return with_client(globals, [&](Client& client) -> Result<int> {
      return print_sandbox(globals, state->before != 0
                                        ? client.restore_before(state->sandbox, state->before)
                                        : client.restore(state->sandbox, state->snapshot));
    });
  };
  return command;
}

static void print_lines(std::string_view text) {
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    print_out("  " + printable(text.substr(0, end)) + "\n");
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

static void print_change(const FileDifference& change) {
  char mark = change.kind == "added" ? '+' : (change.kind == "removed" ? '-' : '~');
  std::string size;
  if (change.type == "file" && change.kind == "changed") {
    size = format_size(change.size_before) + " -> " + format_size(change.size_after);
  } else if (change.type == "file") {
    size = format_size(std::max(change.size_before, change.size_after));
  }
  std::string slash = change.type == "directory" ? "/" : "";
  print_out(fmt::format("{} {}{}{}{}\n", mark, printable(change.path), slash,
                        size.empty() ? "" : "  ", size));
  if (!change.text.empty()) print_lines(change.text);
}

Command diff_command() {
  struct State {
    std::string sandbox, from, to;
    bool text = false;
  };
  auto state = std::make_shared<State>();
  Command command;
  command.name = "diff";
  command.summary = "Show what changed in a sandbox since a snapshot, or between two";
  command.examples = {"atoll diff web snap-4f1c09d2a7be", "atoll diff web v1 v2 --text"};
  command.options = {{"--text", "", "with the differences of small texts", &state->text}};
  command.arguments = {{"SANDBOX", "id or name", &state->sandbox, true, Complete::Sandbox},
                       {"SNAPSHOT", "id or tag", &state->from},
                       {"TO", "another snapshot (default: the sandbox now)", &state->to, false}};
  command.run = [state](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_ASSIGN(DiffAnswer found,
                   client.diff(state->sandbox, state->from, state->to, state->text));
      if (globals.json) {
        print_json(found.json);
        return 0;
      }
      for (const FileDifference& change : found.changes) print_change(change);
      if (!found.complete) print_out("... and more than can be shown\n");
      return 0;
    });
  };
  return command;
}

// What a command changed: from the state before it to the state before the next.
static Result<void> print_changes(Client& client, const std::string& sandbox,
                                  const HistoryPoint& point, const HistoryPoint* next) {
  ATOLL_ASSIGN(DiffAnswer found,
               client.diff(sandbox, point.snapshot, next != nullptr ? next->snapshot : ""));
  for (const FileDifference& change : found.changes) print_change(change);
  return {};
}

Command history_command() {
  struct State {
    std::string sandbox;
    bool changes = false;
  };
  auto state = std::make_shared<State>();
  Command command;
  command.name = "history";
  command.summary = "Show the commands of a sandbox and the states before them";
  command.examples = {"atoll history web", "atoll history web --changes"};
  command.options = {{"--changes", "", "with what each command changed", &state->changes}};
  command.arguments = {{"SANDBOX", "id or name", &state->sandbox, true, Complete::Sandbox}};
  command.run = [state](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_ASSIGN(auto points, client.history(state->sandbox));
      if (globals.json) {
        print_json(join_json(points));
        return 0;
      }
      Table table({{"#"}, {"STATE BEFORE"}, {"AT"}, {"COMMAND", Column::Kind::Elastic}});
      for (size_t i = 0; i < points.size(); i++) {
        const HistoryPoint& point = points[i];
        table.add({Cell(std::to_string(point.number)), Cell(point.snapshot), Cell(point.created_at),
                   Cell(point.command)});
        if (!state->changes) continue;
        print_out(printable(point.command) + "\n");
        const HistoryPoint* next = i + 1 < points.size() ? &points[i + 1] : nullptr;
        ATOLL_TRY(print_changes(client, state->sandbox, point, next));
      }
      if (!state->changes) table.print();
      return 0;
    });
  };
  return command;
}

Command undo_command() {
  auto sandbox = std::make_shared<std::string>();
  Command command;
  command.name = "undo";
  command.summary = "Return a sandbox to the state before its last command; what runs in it ends";
  command.examples = {"atoll create --history --name web && atoll exec web -- rm -rf /workspace",
                      "atoll undo web"};
  command.arguments = {{"SANDBOX", "id or name", sandbox.get(), true, Complete::Sandbox}};
  command.run = [sandbox](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_ASSIGN(HistoryPoint point, client.undo(*sandbox));
      if (globals.json)
        print_json(point.json);
      else if (!globals.quiet)
        print_out("undone: " + printable(point.command) + "\n");
      return 0;
    });
  };
  return command;
}

Command fork_command() {
  struct State {
    std::string sandbox;
    ForkRequest request;
  };
  auto state = std::make_shared<State>();
  Command command;
  command.name = "fork";
  command.summary = "Make copies of a sandbox, with its files as they are now";
  command.examples = {"atoll fork web", "atoll fork web --count 10 --name try",
                      "atoll fork web --memory      # with what runs in it",
                      "atoll fork web --checkpoint ckpt-91b7e0aa53cd"};
  command.options = {{"--memory", "", "with its running processes", &state->request.memory},
                     {"--checkpoint", "CHECKPOINT", "as it was then, with what ran in it",
                      &state->request.checkpoint},
                     {"-c,--count", "N", "how many (default: 1)", &state->request.count},
                     {"-n,--name", "NAME", "of the copy; several are NAME-1, NAME-2 and so on",
                      &state->request.name}};
  command.arguments = {{"SANDBOX", "id or name", &state->sandbox, true, Complete::Sandbox}};
  command.run = [state](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_ASSIGN(auto copies, client.fork(state->sandbox, state->request));
      for (const Sandbox& copy : copies) ATOLL_TRY(print_sandbox(globals, copy));
      return 0;
    });
  };
  return command;
}

}  // namespace atl::cli
