// `atoll snapshot export` and `atoll snapshot import`.
#include <fcntl.h>
#include <unistd.h>

#include <memory>

#include "base/unique_fd.h"
#include "cli/archive_file.h"
#include "cli/report.h"
#include "cli/snapshot_commands.h"

namespace atl::cli {

Command export_snapshot_command() {
  struct State {
    std::string snapshot, file;
  };
  auto state = std::make_shared<State>();
  Command command;
  command.name = "export";
  command.summary = "Write all files of a snapshot to one archive, to take them elsewhere";
  command.examples = {"atoll snapshot export snap-4f1c09d2a7be web.tar.zst"};
  command.arguments = {{"SNAPSHOT", "id or tag", &state->snapshot},
                       {"FILE", "the archive to write: tar, compressed with zstd", &state->file,
                        true, Complete::File}};
  command.run = [state](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      auto download = [&](const ByteSink& sink) {
        return client.export_snapshot(state->snapshot, sink);
      };
      ATOLL_ASSIGN(uint64_t bytes, save_archive(state->file, download));
      return print_saved(globals, state->file, bytes);
    });
  };
  return command;
}

Command import_snapshot_command() {
  auto path = std::make_shared<std::string>();
  Command command;
  command.name = "import";
  command.summary = "Make a snapshot of an archive that export has written";
  command.examples = {"atoll create --from-snapshot $(atoll snapshot import web.tar.zst)"};
  command.arguments = {{"FILE", "the archive", path.get(), true, Complete::File}};
  command.run = [path](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      UniqueFd file(open(path->c_str(), O_RDONLY | O_CLOEXEC));
      if (!file.valid()) return fail_errno("open", *path);
      auto source = [&](std::span<char> buffer) -> Result<size_t> {
        ssize_t size = read(file.get(), buffer.data(), buffer.size());
        if (size < 0) return fail_errno("read", *path);
        return static_cast<size_t>(size);
      };
      ATOLL_ASSIGN(SnapshotInfo made, client.import_snapshot(source));
      if (globals.json)
        print_json(made.json);
      else
        print_out(made.id + "\n");
      return 0;
    });
  };
  return command;
}

}  // namespace atl::cli
