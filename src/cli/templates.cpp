#include <fmt/format.h>

#include <memory>

#include "cli/json_out.h"
#include "cli/report.h"
#include "cli/table.h"
#include "cli/template_commands.h"
#include "cli/units.h"

namespace atl::cli {
namespace {

std::string join(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
  return all;
}

Command ls_templates_command() {
  auto all = std::make_shared<bool>(false);
  Command command;
  command.name = "ls";
  command.summary = "List templates";
  command.examples = {"atoll template ls", "atoll template ls --all",
                      "atoll template ls --json | jq -r '.[].name'"};
  command.options = {{"-a,--all", "", "every version, not only the newest", all.get()}};
  command.run = [all](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_ASSIGN(auto templates, client.templates(*all));
      if (globals.json) {
        print_json(to_json_array(templates));
        return 0;
      }
      if (globals.quiet) {
        for (const TemplateInfo& info : templates) {
          print_out(*all ? fmt::format("{}@{}\n", info.name, info.version) : info.name + "\n");
        }
        return 0;
      }
      Table table({{"NAME", Column::Kind::Elastic},
                   {"VERSION"},
                   {"TAGS"},
                   {"SIZE"},
                   {"LAYERS"},
                   {"CREATED"},
                   {"IN USE"},
                   {"DIGEST"}});
      for (const TemplateInfo& info : templates) {
        table.add({Cell(info.name), Cell(std::to_string(info.version)), Cell(join(info.tags)),
                   Cell(info.bytes == 0 ? "" : format_size(info.bytes)),
                   Cell(std::to_string(info.layers)), Cell(info.created_at),
                   Cell(std::to_string(info.in_use)), Cell(info.digest.substr(0, 19))});
      }
      table.print();
      return 0;
    });
  };
  return command;
}

Command rm_template_command() {
  auto names = std::make_shared<std::vector<std::string>>();
  Command command;
  command.name = "rm";
  command.summary = "Remove templates that no sandbox is made from";
  command.examples = {"atoll template rm web", "atoll template rm web@3"};
  command.arguments = {{"TEMPLATE", "NAME with all its versions, NAME@VERSION or NAME:TAG",
                        names.get(), true, Complete::Template}};
  command.run = [names](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      for (const std::string& name : *names) ATOLL_TRY(client.remove_template(name));
      return 0;
    });
  };
  return command;
}

Command tag_template_command() {
  auto words = std::make_shared<std::pair<std::string, std::string>>();
  Command command;
  command.name = "tag";
  command.summary = "Give a version of a template a further name";
  command.examples = {"atoll template tag web prod", "atoll template tag web@3 prod"};
  command.arguments = {
      {"TEMPLATE", "NAME, NAME@VERSION or NAME:TAG", &words->first, true, Complete::Template},
      {"TAG", "it is NAME:TAG then", &words->second}};
  command.run = [words](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_TRY(client.tag_template(words->first, words->second));
      return 0;
    });
  };
  return command;
}

}  // namespace

Command template_command() {
  Command command;
  command.name = "template";
  command.summary =
      "Templates, what sandboxes start from: list, build, import, export, tag, remove";
  command.examples = {"atoll template ls", "sudo atoll template import rootfs.tar.zst --name base"};
  command.commands.push_back(ls_templates_command());
  command.commands.push_back(create_template_command());
  command.commands.push_back(set_template_command());
  command.commands.push_back(import_template_command());
  command.commands.push_back(export_template_command());
  command.commands.push_back(tag_template_command());
  command.commands.push_back(rm_template_command());
  return command;
}

}  // namespace atl::cli
