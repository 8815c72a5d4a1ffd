#include "cli/doctor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "cli/command.h"
#include "cli/config_options.h"
#include "cli/json_out.h"
#include "cli/report.h"
#include "cli/terminal.h"

namespace atl::cli {
namespace {

std::string_view state_name(Check::State state) {
  switch (state) {
    case Check::State::Ok:
      return "ok";
    case Check::State::Degraded:
      return "degraded";
    case Check::State::Missing:
      return "missing";
  }
  return "missing";
}

Colour state_colour(Check::State state) {
  if (state == Check::State::Ok) return Colour::Green;
  return state == Check::State::Degraded ? Colour::Yellow : Colour::Red;
}

std::vector<Check> all_checks(const DoctorSettings& settings) {
  std::vector<Check> checks = kernel_checks();
  auto add = [&](std::vector<Check> more) {
    for (Check& check : more) checks.push_back(std::move(check));
  };
  add(cgroup_checks());
  add(storage_checks(settings));
  add(host_checks(settings));
  return checks;
}

void print_checks(const std::vector<Check>& checks) {
  bool colour = use_colour(STDOUT_FILENO);
  size_t width = 0;
  for (const Check& check : checks) width = std::max(width, check.name.size());
  for (const Check& check : checks) {
    print_out(fmt::format(
        "{}  {:<{}}  {}\n",
        paint(fmt::format("{:<8}", state_name(check.state)), state_colour(check.state), colour),
        check.name, width, printable(check.detail)));
    if (check.remedy.empty()) continue;
    print_out(fmt::format("{:<{}}  {}\n", "", width + 10, "fix: " + check.remedy));
  }
}

std::string to_json(const Check& check) {
  return JsonObject()
      .text("name", check.name)
      .text("status", state_name(check.state))
      .text("detail", check.detail)
      .text("remedy", check.remedy)
      .take();
}

int run_doctor(const Globals& globals, const DoctorSettings& settings) {
  std::vector<Check> checks = all_checks(settings);
  auto count = [&](Check::State state) {
    return std::count_if(checks.begin(), checks.end(),
                         [&](const Check& check) { return check.state == state; });
  };
  auto lacking = count(Check::State::Missing);
  if (globals.json) {
    std::string list = "[";
    for (const Check& check : checks) list += (list.size() > 1 ? "," : "") + to_json(check);
    print_json(JsonObject().flag("ok", lacking == 0).raw("checks", list + "]").take());
  } else {
    print_checks(checks);
    print_out(fmt::format("\n{} ok, {} degraded, {} missing\n", count(Check::State::Ok),
                          count(Check::State::Degraded), lacking));
  }
  return lacking == 0 ? 0 : 1;
}

}  // namespace

Command doctor_command() {
  auto settings = std::make_shared<DoctorSettings>();
  Command command;
  command.name = "doctor";
  command.summary = "Check what sandboxes need of this host, and say how to fix it";
  command.examples = {"sudo atoll doctor",
                      "atoll doctor --json | jq '.checks[] | select(.status != \"ok\")'"};
  command.options = {{"--data-dir", "DIR", kDataDirHelp, &settings->data_dir, {}, Complete::File},
                     {"--user", "NAME", "the server's account (default: atoll)", &settings->user}};
  command.run = [settings](const Globals& globals) {
    auto data_dir = data_dir_or_configured(settings->data_dir);
    if (!data_dir) return report(data_dir.error());
    settings->data_dir = *data_dir;
    settings->url = globals.url;
    return run_doctor(globals, *settings);
  };
  return command;
}

}  // namespace atl::cli
