// `atoll template create` and `atoll template set`.
#include <fmt/format.h>

#include <memory>

#include "base/whole_file.h"
#include "cli/exec_options.h"
#include "cli/json_out.h"
#include "cli/network_options.h"
#include "cli/report.h"
#include "cli/sandbox_options.h"
#include "cli/template_commands.h"
#include "cli/units.h"
#include "egress/policy_json.h"

namespace atl::cli {
namespace {

// "FROM:TO"; the last colon counts, as paths here may have some.
Result<TemplateRequest::Seed> parse_seed(const std::string& text) {
  size_t colon = text.rfind(':');
  if (colon == text.npos || colon == 0 || colon + 1 == text.size()) {
    return fail(ErrorCode::InvalidArgument, "'" + text + "' is not FILE:PATH-IN-THE-SANDBOX");
  }
  return TemplateRequest::Seed{text.substr(0, colon), text.substr(colon + 1)};
}

// Settings as flags give them.
struct SettingsFlags {
  TemplateSettings settings;
  NetworkFlags network;

  Result<void> finish() {
    ATOLL_ASSIGN(auto policy, network.policy());
    if (policy) settings.network = egress::write_policy(*policy);
    return {};
  }
};

std::vector<Option> settings_flags(SettingsFlags& flags) {
  TemplateSettings& settings = flags.settings;
  std::vector<Option> options = limit_flags(settings.limits);
  options.push_back(disk_flag(settings.limits));
  options.push_back(env_flag(settings.env));
  options.push_back({"--user", "USER", "whom its commands run as", &settings.user});
  options.push_back({"--workdir", "DIR", "where its commands start", &settings.workdir});
  for (Option& option : network_flags(flags.network)) options.push_back(std::move(option));
  return options;
}

int print_made(const Globals& globals, const MadeTemplate& made) {
  if (globals.json) {
    print_json(made.json);
  } else {
    print_out(fmt::format("{}@{}\n", made.info.name, made.info.version));
  }
  return 0;
}

struct CreateState {
  TemplateRequest request;
  SettingsFlags settings;
  std::string script_file;
  std::string timeout;
};

Result<void> complete(CreateState& state) {
  ATOLL_TRY(state.settings.finish());
  state.request.settings = state.settings.settings;
  if (!state.script_file.empty()) {
    ATOLL_ASSIGN(state.request.bootstrap, read_whole_file(state.script_file));
  }
  if (!state.timeout.empty()) {
    ATOLL_ASSIGN(auto time, parse_duration(state.timeout));
    state.request.timeout = std::chrono::ceil<std::chrono::seconds>(time);
  }
  return {};
}

int create(const Globals& globals, CreateState& state) {
  auto completed = complete(state);
  if (!completed) return report(completed.error());
  bool silent = globals.quiet || globals.json;
  auto log = [&](std::string_view text) {
    if (!silent) fmt::print(stderr, "{}", text);
  };
  return with_client(globals, [&](Client& client) -> Result<int> {
    ATOLL_ASSIGN(MadeTemplate made, client.create_template(state.request, log));
    return print_made(globals, made);
  });
}

}  // namespace

Command create_template_command() {
  auto state = std::make_shared<CreateState>();
  TemplateRequest& request = state->request;
  Command command;
  command.name = "create";
  command.summary = "Build a template from another one, or make one of a snapshot";
  command.examples = {
      "atoll template create web2 --from base --bootstrap ./setup.sh --seed ./files:/workspace",
      "atoll template create tools --snapshot snap-4f1c09d2a7be --memory 1g"};
  ReadValue seed = [&request](const std::string& text) -> Result<void> {
    ATOLL_ASSIGN(auto parsed, parse_seed(text));
    request.seeds.push_back(std::move(parsed));
    return {};
  };
  command.options = {
      {"--from",
       "TEMPLATE",
       "what to build on (default: base)",
       &request.base,
       {},
       Complete::Template},
      {"--bootstrap",
       "FILE",
       "a script for /bin/sh, run in it once, as root",
       &state->script_file,
       {},
       Complete::File},
      {"--seed", "FILE:PATH", "put a file or directory there (repeatable)", seed},
      {"--timeout", "TIME", "longest time for the script (default: none)", &state->timeout},
      {"--snapshot", "SNAPSHOT", "start from this instead of building", &request.snapshot}};
  for (Option& option : settings_flags(state->settings))
    command.options.push_back(std::move(option));
  command.arguments = {{"NAME", "what 'atoll create --template' calls it", &request.name}};
  command.run = [state](const Globals& globals) { return create(globals, *state); };
  return command;
}

Command set_template_command() {
  struct State {
    std::string name;
    SettingsFlags settings;
  };
  auto state = std::make_shared<State>();
  Command command;
  command.name = "set";
  command.summary = "Change what sandboxes of a template have where nothing else is said";
  command.examples = {
      "atoll template set web --memory 1g --env MODE=test --user node --allow pypi.org"};
  command.options = settings_flags(state->settings);
  command.arguments = {{"TEMPLATE", "NAME, NAME@VERSION or NAME:TAG; it gets a new version",
                        &state->name, true, Complete::Template}};
  command.run = [state](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_TRY(state->settings.finish());
      ATOLL_ASSIGN(MadeTemplate made,
                   client.update_template(state->name, state->settings.settings));
      return print_made(globals, made);
    });
  };
  return command;
}

}  // namespace atl::cli
