#include <fmt/format.h>

#include <memory>

#include "cli/json_out.h"
#include "cli/report.h"
#include "cli/table.h"
#include "cli/template_commands.h"
#include "cli/units.h"

namespace atl::cli {
namespace {

Command ls_templates_command() {
  Command command;
  command.name = "ls";
  command.summary = "List templates";
  command.examples = {"atoll template ls", "atoll template ls --json | jq -r '.[].name'"};
  command.run = [](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_ASSIGN(auto templates, client.templates());
      if (globals.json) {
        print_json(to_json_array(templates));
        return 0;
      }
      Table table({{"NAME", Column::Kind::Elastic}, {"CREATED"}, {"DIGEST"}});
      for (const TemplateInfo& info : templates) {
        table.add({Cell(info.name), Cell(info.created_at), Cell(info.digest.substr(0, 19))});
      }
      table.print();
      return 0;
    });
  };
  return command;
}

}  // namespace

Command template_command() {
  Command command;
  command.name = "template";
  command.summary = "List and import templates: what sandboxes start from";
  command.examples = {"atoll template ls", "sudo atoll template import rootfs.tar.zst --name base"};
  command.commands.push_back(ls_templates_command());
  command.commands.push_back(import_template_command());
  return command;
}

}  // namespace atl::cli
