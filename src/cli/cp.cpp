// cp and cat: files and directories, either way.
#include <errno.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>

#include "cli/json_out.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/target.h"

namespace atl::cli {
namespace {

struct Copy {
  Client& client;
  const Globals& globals;
  Target from;
  Target to;
};

struct Copied {
  TransferReport report;
  std::string to;
};

// "dir/." means what is in the directory, as cp and docker have it.
bool means_content(const std::string& path) { return path == "." || path.ends_with("/."); }

Result<std::optional<FileKind>> local_kind(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return std::optional<FileKind>();
    return fail_errno("stat", path);
  }
  return S_ISDIR(info.st_mode) ? FileKind::Directory : FileKind::File;
}

// A link counts as what it leads to: listing through it works for directories only.
Result<std::optional<FileKind>> remote_kind(Client& client, const Target& target) {
  auto entry = client.stat(target.sandbox, target.path);
  if (!entry) {
    bool no_such_file = entry.error().code() == ErrorCode::NotFound &&
                        entry.error().message().find("sandbox") == std::string::npos;
    if (no_such_file) return std::optional<FileKind>();
    return fail(std::move(entry).error());
  }
  if (entry->kind != FileKind::Symlink) return entry->kind;
  ListFilesRequest one;
  one.limit = 1;
  bool directory = client.list_files(target.sandbox, target.path, one).has_value();
  return directory ? FileKind::Directory : FileKind::File;
}

// Into an existing directory things go under their own name; else the target is the new name.
std::string final_path(const std::string& to, bool to_is_directory, const std::string& from) {
  bool into = to_is_directory || to.ends_with('/');
  std::string name = last_name(from);
  return into && !name.empty() && !means_content(from) ? join_path(to, name) : to;
}

Result<Copied> upload(const Copy& copy) {
  ATOLL_ASSIGN(auto kind, local_kind(copy.from.path));
  if (!kind) return fail(Error::from_errno(ENOENT, "open", copy.from.path));
  ATOLL_ASSIGN(auto there, remote_kind(copy.client, copy.to));
  std::string to = final_path(copy.to.path, there == FileKind::Directory, copy.from.path);
  Progress progress(copy.from.path, copy.globals.quiet);
  if (*kind == FileKind::Directory) {
    if (there && there != FileKind::Directory) {
      return fail(ErrorCode::InvalidArgument, copy.to.path + " in the sandbox is not a directory");
    }
    ATOLL_ASSIGN(TransferReport report,
                 copy.client.upload_dir(copy.to.sandbox, copy.from.path, to, progress.sink()));
    return Copied{report, to};
  }
  ATOLL_ASSIGN(uint64_t bytes,
               copy.client.upload_file(copy.to.sandbox, copy.from.path, to, progress.sink()));
  return Copied{{1, bytes, 0}, to};
}

Result<Copied> download(const Copy& copy) {
  ATOLL_ASSIGN(auto kind, remote_kind(copy.client, copy.from));
  if (!kind) {
    return fail(ErrorCode::NotFound,
                fmt::format("{}:{} does not exist", copy.from.sandbox, copy.from.path));
  }
  ATOLL_ASSIGN(auto here, local_kind(copy.to.path));
  std::string to = final_path(copy.to.path, here == FileKind::Directory, copy.from.path);
  Progress progress(copy.from.sandbox + ":" + copy.from.path, copy.globals.quiet);
  if (*kind == FileKind::Directory) {
    if (here && here != FileKind::Directory) {
      return fail(ErrorCode::InvalidArgument, copy.to.path + " is not a directory");
    }
    ATOLL_ASSIGN(TransferReport report,
                 copy.client.download_dir(copy.from.sandbox, copy.from.path, to, progress.sink()));
    return Copied{report, to};
  }
  ATOLL_ASSIGN(uint64_t bytes,
               copy.client.download_file(copy.from.sandbox, copy.from.path, to, progress.sink()));
  return Copied{{1, bytes, 0}, to};
}

Result<void> write_stdout(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t size = write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail_errno("write", "standard output");
    bytes.remove_prefix(static_cast<size_t>(size));
  }
  return {};
}

Result<size_t> read_stdin(std::span<char> buffer) {
  ssize_t size = 0;
  do {
    size = read(STDIN_FILENO, buffer.data(), buffer.size());
  } while (size < 0 && errno == EINTR);
  if (size < 0) return fail_errno("read", "standard input");
  return static_cast<size_t>(size);
}

// A file's bytes, or a directory as a tar archive.
Result<int> to_stdout(Client& client, const Target& from) {
  ATOLL_ASSIGN(auto kind, remote_kind(client, from));
  auto done = kind == FileKind::Directory
                  ? client.download_tar(from.sandbox, from.path, write_stdout)
                  : client.download(from.sandbox, from.path, write_stdout);
  if (!done) return fail(std::move(done).error());
  return 0;
}

Result<int> from_stdin(const Copy& copy) {
  if (copy.to.path.ends_with('/')) {
    return fail(ErrorCode::InvalidArgument,
                "standard input needs a file name, not " + copy.to.path);
  }
  Progress progress("standard input", copy.globals.quiet);
  UploadRequest request;
  request.progress = progress.sink();
  ATOLL_TRY(copy.client.upload(copy.to.sandbox, copy.to.path, read_stdin, request));
  return 0;
}

Result<int> run_copy(const Copy& copy) {
  using Kind = Target::Kind;
  if (copy.from.remote() && copy.to.kind == Kind::Standard)
    return to_stdout(copy.client, copy.from);
  if (copy.from.kind == Kind::Standard && copy.to.remote()) return from_stdin(copy);
  ATOLL_ASSIGN(Copied copied, copy.to.remote() ? upload(copy) : download(copy));
  if (copied.report.skipped != 0) {
    fmt::print(stderr, "atoll: {} sockets, pipes or devices were left out\n",
               copied.report.skipped);
  }
  if (copy.globals.json) {
    print_json(JsonObject()
                   .text("path", copied.to)
                   .number("files", static_cast<int64_t>(copied.report.files))
                   .number("bytes", static_cast<int64_t>(copied.report.bytes))
                   .take());
  }
  return 0;
}

struct State {
  std::string from;
  std::string to;
};

// From one sandbox to another.
std::string piped_copy(const State& state) {
  return fmt::format("for a file: atoll cp {} - | atoll cp - {}", state.from, state.to);
}

}  // namespace

Command cp_command() {
  auto state = std::make_shared<State>();
  Command command;
  command.name = "cp";
  command.summary = "Copy files and directories into a sandbox or out of it";
  command.examples = {"atoll cp ./dir web:/workspace/dir", "atoll cp web:/workspace/out.tar .",
                      "atoll cp ./dir/. web:/workspace      # what is in dir",
                      "echo hi | atoll cp - web:hi.txt", "atoll cp web:/workspace - | tar t"};
  command.arguments = {
      {"FROM", "PATH, SANDBOX:PATH or - (standard input)", &state->from, true, Complete::Target},
      {"TO", "PATH, SANDBOX:PATH or - (standard output)", &state->to, true, Complete::Target}};
  command.run = [state](const Globals& globals) {
    auto from = parse_target(state->from);
    auto to = parse_target(state->to);
    if (!from) return report_usage(from.error().message());
    if (!to) return report_usage(to.error().message());
    if (from->remote() == to->remote()) {
      return report_usage(from->remote()
                              ? "both sides are in sandboxes (" + piped_copy(*state) + ")"
                              : "neither side is in a sandbox (write SANDBOX:PATH)");
    }
    return with_client(globals, [&](Client& client) {
      return run_copy({client, globals, *from, *to});
    });
  };
  return command;
}

Command cat_command() {
  auto files = std::make_shared<std::vector<std::string>>();
  Command command;
  command.name = "cat";
  command.summary = "Print files of a sandbox";
  command.examples = {"atoll cat web:/etc/os-release", "atoll cat web:a.log web:b.log"};
  command.arguments = {{"FILE", "SANDBOX:PATH", files.get(), true, Complete::Remote}};
  command.run = [files](const Globals& globals) {
    std::vector<Target> targets;
    for (const std::string& file : *files) {
      auto target = parse_remote(file);
      if (!target) return report_usage(target.error().message());
      targets.push_back(std::move(*target));
    }
    return with_client(globals, [&](Client& client) -> Result<int> {
      for (const Target& target : targets) {
        ATOLL_TRY(client.download(target.sandbox, target.path, write_stdout));
      }
      return 0;
    });
  };
  return command;
}

}  // namespace atl::cli
