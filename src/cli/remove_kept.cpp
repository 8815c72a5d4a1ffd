#include <memory>

#include "cli/json_out.h"
#include "cli/report.h"
#include "cli/snapshot_commands.h"

namespace atl::cli {

Command remove_kept_command(const std::string& kind, const std::string& argument,
                            const std::string& example,
                            Result<void> (Client::*remove)(std::string_view)) {
  auto names = std::make_shared<std::vector<std::string>>();
  Command command;
  command.name = "rm";
  command.summary = "Remove " + kind + "; sandboxes made from them stay";
  command.examples = {example};
  command.arguments = {{argument, "ids or tags", names.get()}};
  command.run = [names, remove](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      for (const std::string& name : *names) {
        ATOLL_TRY((client.*remove)(name));
        if (globals.json)
          print_json(JsonObject().text("removed", name).take());
        else if (!globals.quiet)
          print_out(name + "\n");
      }
      return 0;
    });
  };
  return command;
}

}  // namespace atl::cli
