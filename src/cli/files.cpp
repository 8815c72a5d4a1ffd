// files ls|stat|mkdir|mv|rm, search, watch.
#include <fmt/format.h>
#include <stdio.h>
#include <unistd.h>

#include <memory>

#include "base/file_change.h"
#include "cli/json_out.h"
#include "cli/report.h"
#include "cli/table.h"
#include "cli/target.h"
#include "cli/units.h"

namespace atl::cli {
namespace {

struct PathArgument {
  std::string text;
  bool recursive = false;
  bool force = false;
  bool all = false;
};

Argument path_argument(PathArgument& into) {
  return {"PATH", "SANDBOX:PATH", &into.text, true, Complete::Remote};
}

// Checks the target before it bothers the server.
template <class Verb>
int with_target(const Globals& globals, const std::string& text, const Verb& verb) {
  auto target = parse_remote(text);
  if (!target) return report_usage(target.error().message());
  return with_client(globals, [&](Client& client) { return verb(client, *target); });
}

char kind_letter(FileKind kind) {
  switch (kind) {
    case FileKind::Directory:
      return 'd';
    case FileKind::Symlink:
      return 'l';
    case FileKind::Other:
      return '?';
    case FileKind::File:
      return '-';
  }
  return '-';
}

Colour kind_colour(const FileEntry& entry) {
  if (entry.kind == FileKind::Directory) return Colour::Blue;
  return entry.kind == FileKind::File && (entry.mode & 0111) ? Colour::Green : Colour::None;
}

void print_entries(const std::vector<FileEntry>& entries, bool full_paths) {
  using Kind = Column::Kind;
  Table table({{"MODE"}, {"OWNER"}, {"SIZE", Kind::Right}, {"MODIFIED"}, {"NAME", Kind::Elastic}});
  for (const FileEntry& entry : entries) {
    std::string name = printable(full_paths ? entry.path : entry.name);
    if (!entry.link_target.empty()) name += " -> " + printable(entry.link_target);
    std::string time = iso_time(entry.modified_ms).substr(0, 16);
    if (time.size() > 10) time[10] = ' ';
    table.add({Cell(fmt::format("{}{:04o}", kind_letter(entry.kind), entry.mode)),
               Cell(printable(entry.owner + ":" + entry.group)), Cell(format_size(entry.size)),
               Cell(time), Cell(name, kind_colour(entry))});
  }
  table.print();
}

Command ls_files_command() {
  auto path = std::make_shared<PathArgument>();
  Command command;
  command.name = "ls";
  command.summary = "List a directory";
  command.examples = {"atoll files ls web:/etc", "atoll files ls -r web:src"};
  command.options = {
      {"-r,--recursive", "", "also what is in the directories below", &path->recursive},
      {"-a,--all", "", "also names that start with a dot", &path->all}};
  command.arguments = {path_argument(*path)};
  command.run = [path](const Globals& globals) {
    return with_target(globals, path->text, [&](Client& client, const Target& at) -> Result<int> {
      ListFilesRequest request;
      request.recursive = path->recursive;
      request.hidden = path->all;
      ATOLL_ASSIGN(DirectoryList list, client.list_files(at.sandbox, at.path, request));
      if (globals.json)
        print_json(to_json_array(list.entries));
      else
        print_entries(list.entries, path->recursive);
      if (list.truncated) fmt::print(stderr, "atoll: there is more than this\n");
      return 0;
    });
  };
  return command;
}

Command stat_command() {
  auto path = std::make_shared<PathArgument>();
  Command command;
  command.name = "stat";
  command.summary = "Show the type, mode, owner, size and time of a file";
  command.examples = {"atoll files stat web:/etc/passwd --json"};
  command.arguments = {path_argument(*path)};
  command.run = [path](const Globals& globals) {
    return with_target(globals, path->text, [&](Client& client, const Target& at) -> Result<int> {
      ATOLL_ASSIGN(FileEntry entry, client.stat(at.sandbox, at.path));
      if (globals.json)
        print_json(to_json(entry));
      else
        print_entries({entry}, true);
      return 0;
    });
  };
  return command;
}

Result<int> confirm(const Globals& globals, const Result<void>& done, const std::string& path) {
  if (!done) return tl::unexpected(done.error());
  if (globals.json) print_json(JsonObject().text("path", path).take());
  return 0;
}

Command mkdir_command() {
  auto path = std::make_shared<PathArgument>();
  Command command;
  command.name = "mkdir";
  command.summary = "Make a directory, and those above it where missing";
  command.examples = {"atoll files mkdir web:/workspace/a/b"};
  command.arguments = {path_argument(*path)};
  command.run = [path](const Globals& globals) {
    return with_target(globals, path->text, [&](Client& client, const Target& at) {
      return confirm(globals, client.make_directory(at.sandbox, at.path), at.path);
    });
  };
  return command;
}

Command rm_files_command() {
  auto path = std::make_shared<PathArgument>();
  Command command;
  command.name = "rm";
  command.summary = "Remove a file or directory";
  command.examples = {"atoll files rm web:old.txt", "atoll files rm -rf web:build"};
  command.options = {
      {"-r,--recursive", "", "also a directory with all that is in it", &path->recursive},
      {"-f,--force", "", "no error where it does not exist", &path->force}};
  command.arguments = {path_argument(*path)};
  command.run = [path](const Globals& globals) {
    return with_target(globals, path->text, [&](Client& client, const Target& at) {
      RemovePathRequest request{path->recursive, path->force};
      return confirm(globals, client.remove_path(at.sandbox, at.path, request), at.path);
    });
  };
  return command;
}

Command mv_command() {
  struct State {
    std::string from;
    std::string to;
  };
  auto state = std::make_shared<State>();
  Command command;
  command.name = "mv";
  command.summary = "Rename a file or directory";
  command.examples = {"atoll files mv web:a.txt web:b.txt"};
  command.arguments = {{"FROM", "SANDBOX:PATH", &state->from, true, Complete::Remote},
                       {"TO", "SANDBOX:PATH", &state->to, true, Complete::Remote}};
  command.run = [state](const Globals& globals) {
    auto to = parse_remote(state->to);
    if (!to) return report_usage(to.error().message());
    return with_target(globals, state->from, [&](Client& client, const Target& at) -> Result<int> {
      if (at.sandbox != to->sandbox) {
        return fail(
            ErrorCode::InvalidArgument,
            "files move within one sandbox only ('atoll cp' through '-' copies between two)");
      }
      return confirm(globals, client.move(at.sandbox, at.path, to->path), to->path);
    });
  };
  return command;
}

void print_matches(const SearchAnswer& found) {
  bool colour = use_colour(STDOUT_FILENO);
  auto context = [](const SearchMatch& match, const std::vector<std::string>& lines, size_t first) {
    for (size_t i = 0; i < lines.size(); i++) {
      print_out(fmt::format("{}-{}-{}\n", printable(match.path), first + i, printable(lines[i])));
    }
  };
  for (const SearchMatch& match : found.matches) {
    context(match, match.before, match.line - match.before.size());
    print_out(fmt::format("{}:{}:{}\n", paint(printable(match.path), Colour::Blue, colour),
                          paint(std::to_string(match.line), Colour::Green, colour),
                          printable(match.text)));
    context(match, match.after, match.line + 1);
  }
  if (found.truncated) {
    fmt::print(stderr, "atoll: there are more matches (raise --max)\n");
  }
}

}  // namespace

Command files_command() {
  Command command;
  command.name = "files";
  command.summary = "List, make, move and remove files of a sandbox";
  command.examples = {"atoll files ls web:/workspace", "atoll files rm -r web:build"};
  command.commands.push_back(ls_files_command());
  command.commands.push_back(stat_command());
  command.commands.push_back(mkdir_command());
  command.commands.push_back(mv_command());
  command.commands.push_back(rm_files_command());
  return command;
}

Command search_command() {
  struct State {
    std::string where;
    SearchRequest request;
    unsigned max = 0;
    unsigned context = 0;
  };
  auto state = std::make_shared<State>();
  Command command;
  command.name = "search";
  command.summary = "Find text in the files of a sandbox; exits 1 when there is none";
  command.examples = {"atoll search web:/workspace 'TODO|FIXME'",
                      "atoll search web:src main --glob '*.py' -C 2"};
  command.options = {
      {"-g,--glob", "GLOB", "only files whose name matches, such as '*.py'", &state->request.glob},
      {"-i,--ignore-case", "", "upper and lower case are the same", &state->request.ignore_case},
      {"-C,--context", "N", "show so many lines around each match", &state->context},
      {"--max", "N", "stop after so many matches", &state->max}};
  command.arguments = {{"WHERE", "SANDBOX:DIRECTORY", &state->where, true, Complete::Remote},
                       {"PATTERN", "extended regular expression", &state->request.pattern}};
  command.run = [state](const Globals& globals) {
    return with_target(globals, state->where, [&](Client& client, const Target& at) -> Result<int> {
      state->request.cwd = at.path;
      state->request.max_results = state->max;
      state->request.context = state->context;
      ATOLL_ASSIGN(SearchAnswer found, client.search(at.sandbox, state->request));
      if (globals.json)
        print_json(to_json_array(found.matches));
      else
        print_matches(found);
      return found.matches.empty() ? 1 : 0;
    });
  };
  return command;
}

Command watch_command() {
  struct State {
    std::string where;
    bool flat = false;
  };
  auto state = std::make_shared<State>();
  Command command;
  command.name = "watch";
  command.summary = "Print changes to files as they happen, until Ctrl-C";
  command.examples = {"atoll watch web:/workspace", "atoll watch web:src --json | jq .path"};
  command.options = {{"--flat", "", "only the directory itself, not those below it", &state->flat}};
  command.arguments = {{"WHERE", "SANDBOX:PATH", &state->where, true, Complete::Remote}};
  command.run = [state](const Globals& globals) {
    return with_target(globals, state->where, [&](Client& client, const Target& at) -> Result<int> {
      WatchScope scope = state->flat ? WatchScope::Directory : WatchScope::Recursive;
      ATOLL_ASSIGN(WatchReader reader, client.watch(at.sandbox, at.path, scope));
      while (true) {
        ATOLL_ASSIGN(std::optional<FileEvent> event, reader.next());
        if (!event) return 0;
        if (globals.json)
          print_out(to_json(*event) + "\n");
        else
          print_out(fmt::format("{:<10}  {}{}\n", to_string(event->change), printable(event->path),
                                event->is_dir ? "/" : ""));
        fflush(stdout);
      }
    });
  };
  return command;
}

}  // namespace atl::cli
