#include <fmt/format.h>

#include <memory>

#include "cli/hidden_input.h"
#include "cli/json_out.h"
#include "cli/report.h"
#include "cli/table.h"

namespace atl::cli {
namespace {

constexpr size_t kMaxValue = 128u << 10;

Command set_command() {
  auto name = std::make_shared<std::string>();
  Command command;
  command.name = "set";
  command.summary = "Make a secret or replace its value, from standard input or as it is typed";
  command.examples = {"atoll secret set NPM_TOKEN", "atoll secret set NPM_TOKEN < token.txt"};
  command.arguments = {{"NAME", "of the variable that sandboxes get", name.get()}};
  command.run = [name](const Globals& globals) {
    auto value = read_hidden(fmt::format("Value of {}: ", *name), kMaxValue);
    if (!value) return report(value.error());
    if (value->empty()) return report_usage("the value is empty (give it on standard input)");
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_ASSIGN(SecretInfo info, client.set_secret(*name, *value));
      if (globals.json)
        print_json(info.json);
      else
        print_out(info.name + "\n");
      return 0;
    });
  };
  return command;
}

Command ls_secrets_command() {
  Command command;
  command.name = "ls";
  command.summary = "List secrets; nothing shows their values";
  command.examples = {"atoll secret ls", "atoll secret ls --tenant acme --json"};
  command.run = [](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_ASSIGN(auto secrets, client.secrets());
      if (globals.json) {
        print_json(join_json(secrets));
        return 0;
      }
      Table table({{"NAME", Column::Kind::Elastic}, {"CREATED"}, {"UPDATED"}});
      for (const SecretInfo& info : secrets) {
        if (globals.quiet) print_out(info.name + "\n");
        table.add({Cell(info.name), Cell(info.created_at), Cell(info.updated_at)});
      }
      if (!globals.quiet) table.print();
      return 0;
    });
  };
  return command;
}

Command rm_secret_command() {
  auto name = std::make_shared<std::string>();
  Command command;
  command.name = "rm";
  command.summary = "Remove a secret; sandboxes that have it keep it until they are started again";
  command.examples = {"atoll secret rm NPM_TOKEN"};
  command.arguments = {{"NAME", "the secret", name.get()}};
  command.run = [name](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_TRY(client.remove_secret(*name));
      if (globals.json)
        print_json(JsonObject().text("removed", *name).take());
      else if (!globals.quiet)
        print_out(*name + "\n");
      return 0;
    });
  };
  return command;
}

}  // namespace

Command secret_command() {
  Command command;
  command.name = "secret";
  command.summary = "Set, list and remove what sandboxes may know and nobody reads back";
  command.examples = {"atoll secret set NPM_TOKEN < token.txt",
                      "atoll create --secret NPM_TOKEN --name web"};
  command.commands.push_back(set_command());
  command.commands.push_back(ls_secrets_command());
  command.commands.push_back(rm_secret_command());
  return command;
}

}  // namespace atl::cli
