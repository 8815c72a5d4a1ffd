// `atoll template export`.
#include <memory>

#include "cli/archive_file.h"
#include "cli/report.h"
#include "cli/template_commands.h"

namespace atl::cli {

Command export_template_command() {
  struct State {
    std::string name, file;
  };
  auto state = std::make_shared<State>();
  Command command;
  command.name = "export";
  command.summary = "Write a template's root filesystem to an archive, which import takes";
  command.examples = {"atoll template export web web.tar.zst"};
  command.arguments = {
      {"TEMPLATE", "NAME, NAME@VERSION or NAME:TAG", &state->name, true, Complete::Template},
      {"FILE", "the archive to write: tar, compressed with zstd", &state->file, true,
       Complete::File}};
  command.run = [state](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      auto download = [&](const ByteSink& sink) {
        return client.export_template(state->name, sink);
      };
      ATOLL_ASSIGN(uint64_t bytes, save_archive(state->file, download));
      return print_saved(globals, state->file, bytes);
    });
  };
  return command;
}

}  // namespace atl::cli
