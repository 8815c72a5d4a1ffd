// config show, config check.
#include <fmt/format.h>

#include <memory>

#include "base/units.h"
#include "cli/config_options.h"
#include "cli/json_out.h"
#include "cli/report.h"
#include "cli/table.h"

namespace atl::cli {
namespace {

Option option_of(const config::Setting& setting, config::Inputs& inputs) {
  std::string help(setting.help);
  if (!setting.fallback.empty()) help += fmt::format(" (default: {})", setting.fallback);
  Option option;
  option.flags = config::flag_of(setting);
  option.value = config::value_name(setting);
  option.help = std::move(help);
  if (option.value == "DIR" || option.value == "FILE") option.complete = Complete::File;
  for (std::string_view choice : setting.choices) option.choices.emplace_back(choice);
  option.slot = [&setting, &inputs](const std::string& text) -> Result<void> {
    ATOLL_TRY(config::check(setting, text));
    inputs.flags[std::string(setting.key)] = text;
    return {};
  };
  return option;
}

std::string shown_text(const config::Value& value) {
  return value.setting->secret && !value.text.empty() ? "[secret]" : value.text;
}

std::string value_json(const config::Value& value) {
  JsonObject object;
  object.text("key", value.setting->key);
  if (value.setting->kind == config::Kind::Count)
    object.number("value", parse_count(value.text).value_or(0));
  else if (value.setting->kind == config::Kind::Switch)
    object.flag("value", value.text == "true");
  else
    object.text("value", shown_text(value));
  return object.text("source", config::to_string(value.source)).text("origin", value.origin).take();
}

int show(const Globals& globals, const config::Inputs& inputs) {
  auto loaded = config::load_from_environment(inputs);
  if (!loaded) return report(loaded.error());
  if (globals.json) {
    std::string all;
    for (const config::Value& value : loaded->values) {
      all.append(all.empty() ? "" : ",").append(value_json(value));
    }
    print_json("[" + all + "]");
    return 0;
  }
  Table table({{"KEY"}, {"VALUE", Column::Kind::Elastic}, {"FROM"}});
  for (const config::Value& value : loaded->values) {
    table.add({Cell(std::string(value.setting->key)), Cell(shown_text(value)),
               Cell(value.origin.empty() ? "default" : value.origin)});
  }
  table.print();
  return 0;
}

Command show_command() {
  auto inputs = std::make_shared<config::Inputs>();
  Command command;
  command.name = "show";
  command.summary = "Print every setting's value and where it comes from";
  command.examples = {"atoll config show", "atoll config show --config ./config.toml --json",
                      "ATOLL_POOL=8 atoll config show --listen none"};
  command.options = config_options(*inputs);
  command.run = [inputs](const Globals& globals) { return show(globals, *inputs); };
  return command;
}

int check(const Globals& globals, const std::string& file) {
  std::vector<std::string> problems = config::problems_of_file(file);
  if (globals.json) {
    print_json(JsonObject()
                   .text("file", file)
                   .flag("ok", problems.empty())
                   .raw("problems", to_json(problems))
                   .take());
  } else if (problems.empty()) {
    print_out(file + ": ok\n");
  }
  if (problems.empty()) return 0;
  if (!globals.json) {
    for (const std::string& problem : problems) report_usage(problem);
  }
  return kOwnFailure;
}

Command check_command() {
  auto file = std::make_shared<std::string>();
  Command command;
  command.name = "check";
  command.summary = "Say what is wrong with a configuration file";
  command.examples = {"atoll config check /etc/atoll/config.toml"};
  command.arguments = {{"FILE", "the file, TOML", file.get(), true, Complete::File}};
  command.run = [file](const Globals& globals) { return check(globals, *file); };
  return command;
}

}  // namespace

Result<std::string> data_dir_or_configured(const std::string& given) {
  if (!given.empty()) return given;
  ATOLL_ASSIGN(config::Loaded loaded, config::load_from_environment({}));
  return loaded.config.data_dir;
}

std::vector<Option> config_options(config::Inputs& inputs) {
  std::vector<Option> options;
  options.push_back(
      {"--config", "FILE",
       fmt::format("settings (default: {}, where there is one)", config::kDefaultFile),
       &inputs.file});
  for (const config::Setting& setting : config::all_settings()) {
    options.push_back(option_of(setting, inputs));
  }
  return options;
}

Command config_command() {
  Command command;
  command.name = "config";
  command.summary = "Show and check the server's settings";
  command.examples = {"atoll config show", "atoll config check /etc/atoll/config.toml"};
  command.commands.push_back(show_command());
  command.commands.push_back(check_command());
  return command;
}

}  // namespace atl::cli
