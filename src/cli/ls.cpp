#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <memory>

#include "cli/json_out.h"
#include "cli/report.h"
#include "cli/sandbox_options.h"
#include "cli/table.h"
#include "cli/units.h"
#include "client/decode.h"

namespace atl::cli {
namespace {

Colour status_colour(std::string_view status) {
  if (status == "running") return Colour::Green;
  if (status == "paused") return Colour::Yellow;
  return status == "failed" ? Colour::Red : Colour::Dim;
}

std::string age_of(const std::string& time) {
  int64_t then = client::parse_time_ms(time);
  return then == 0 ? "-" : format_age(std::chrono::milliseconds(now_ms() - then));
}

std::string time_left(const std::string& time) {
  int64_t then = client::parse_time_ms(time);
  return then == 0 ? "never" : "in " + format_age(std::chrono::milliseconds(then - now_ms()));
}

std::string limit_text(uint64_t bytes) { return bytes == 0 ? "-" : format_size(bytes); }
std::string cores_text(uint32_t millis) {
  return millis == 0 ? "-" : fmt::format("{:g}", millis / 1000.0);
}

void print_table(const std::vector<Sandbox>& sandboxes) {
  using Kind = Column::Kind;
  Table table({{"NAME", Kind::Elastic},
               {"ID"},
               {"STATUS"},
               {"TEMPLATE", Kind::Elastic},
               {"CPU", Kind::Right},
               {"MEMORY", Kind::Right},
               {"AGE", Kind::Right}});
  for (const Sandbox& sandbox : sandboxes) {
    table.add({Cell(sandbox.name.empty() ? "-" : printable(sandbox.name)), Cell(sandbox.id),
               Cell(sandbox.status, status_colour(sandbox.status)),
               Cell(printable(sandbox.template_name)), Cell(cores_text(sandbox.limits.cpu_millis)),
               Cell(limit_text(sandbox.limits.memory_bytes)), Cell(age_of(sandbox.created_at))});
  }
  table.print();
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : ", ") + text;
  return all;
}

void print_details(const Sandbox& sandbox) {
  bool colour = use_colour(STDOUT_FILENO);
  auto line = [&](std::string_view key, const std::string& value, Colour painted = Colour::None) {
    if (value.empty()) return;
    print_out(fmt::format("{} {}\n", paint(fmt::format("{:<12}", key), Colour::Bold, colour),
                          paint(printable(value), painted, colour)));
  };
  std::string metadata;
  for (const auto& [key, value] : sandbox.metadata) {
    metadata += (metadata.empty() ? "" : ", ") + key + "=" + value;
  }
  line("Name", sandbox.name);
  line("Id", sandbox.id);
  line("Status", sandbox.status, status_colour(sandbox.status));
  line("Reason", sandbox.reason);
  line("Tenant", sandbox.tenant);
  line("Template", sandbox.template_name);
  line("Profile", sandbox.profile);
  line("User", sandbox.user);
  line("CPU", cores_text(sandbox.limits.cpu_millis));
  line("Memory", limit_text(sandbox.limits.memory_bytes));
  line("Disk", limit_text(sandbox.limits.disk_bytes));
  line("Processes", sandbox.limits.pids == 0 ? "-" : std::to_string(sandbox.limits.pids));
  line("Variables", joined(sandbox.env_names));
  line("Labels", metadata);
  line("Created", sandbox.created_at);
  line("Started", sandbox.started_at);
  line("Active", sandbox.last_activity_at);
  line("Ends", time_left(sandbox.expires_at));
  line("Isolation", sandbox.isolation.driver + ", " + sandbox.isolation.boundary + " boundary");
  line("Degraded", joined(sandbox.isolation.degraded), Colour::Yellow);
  line("Made in",
       fmt::format("{} ({})", format_cpu(sandbox.timings.total_us), sandbox.timings.source));
}

}  // namespace

Command ls_command() {
  struct State {
    ListRequest request;
  };
  auto state = std::make_shared<State>();
  Command command;
  command.name = "ls";
  command.summary = "List sandboxes";
  command.examples = {"atoll ls", "atoll ls --status running --json | jq -r '.[].id'",
                      "atoll ls -q --status stopped | xargs -r atoll rm"};
  command.options = {{"--status",
                      "STATUS",
                      "only running, paused, stopped or failed ones",
                      &state->request.status,
                      {"running", "paused", "stopped", "failed"}},
                     {"--limit", "N", "show at most so many", &state->request.limit},
                     {"--offset", "N", "leave out the first ones", &state->request.offset}};
  command.run = [state](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_ASSIGN(auto sandboxes, client.list(state->request));
      if (globals.json)
        print_json(join_json(sandboxes));
      else if (!globals.quiet)
        print_table(sandboxes);
      else
        for (const Sandbox& sandbox : sandboxes) print_out(display_name(sandbox) + "\n");
      return 0;
    });
  };
  return command;
}

Command inspect_command() {
  auto sandbox = std::make_shared<std::string>();
  Command command;
  command.name = "inspect";
  command.summary = "Show everything about a sandbox";
  command.examples = {"atoll inspect web", "atoll inspect web --json | jq .timings"};
  command.arguments = {{"SANDBOX", "id or name", sandbox.get(), true, Complete::Sandbox}};
  command.run = [sandbox](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_ASSIGN(Sandbox found, client.get(*sandbox));
      if (globals.json)
        print_json(found.json);
      else
        print_details(found);
      return 0;
    });
  };
  return command;
}

}  // namespace atl::cli
