#include <fmt/format.h>

#include <memory>

#include "cli/report.h"
#include "cli/table.h"
#include "cli/units.h"

namespace atl::cli {
namespace {

using Kind = Column::Kind;

std::string seconds_text(double seconds) {
  return format_cpu(static_cast<uint64_t>(seconds * 1e6));
}
std::string gb_seconds_text(double amount) { return fmt::format("{:.2f}", amount); }

void print_usage(const SandboxUsage& usage) {
  Table table({{"MEMORY", Kind::Right},
               {"PEAK", Kind::Right},
               {"CPU TIME", Kind::Right},
               {"RAN FOR", Kind::Right},
               {"GB SECONDS", Kind::Right},
               {"PROCESSES", Kind::Right},
               {"OOM KILLS", Kind::Right}});
  std::string cpu = seconds_text(usage.metered.cpu_seconds);
  std::string ran = seconds_text(usage.metered.running_seconds);
  std::string memory = gb_seconds_text(usage.metered.memory_gb_seconds);
  if (const auto& now = usage.present) {
    table.add(
        {Cell(format_size(now->memory_bytes)), Cell(format_size(now->memory_peak_bytes)), Cell(cpu),
         Cell(ran), Cell(memory), Cell(std::to_string(now->pids)),
         Cell(std::to_string(now->oom_kills), now->oom_kills == 0 ? Colour::None : Colour::Red)});
  } else {
    table.add({Cell("-"), Cell("-"), Cell(cpu), Cell(ran), Cell(memory), Cell("-"), Cell("-")});
  }
  table.print();
}

void print_account(const AccountUsage& usage) {
  Table table({{"TENANT", Kind::Elastic},
               {"KEY", Kind::Elastic},
               {"RUNNING", Kind::Right},
               {"SANDBOXES", Kind::Right},
               {"CPU TIME", Kind::Right},
               {"RAN FOR", Kind::Right},
               {"GB SECONDS", Kind::Right}});
  for (const KeyUsage& key : usage.keys) {
    table.add({Cell(printable(key.tenant)), Cell(key.key_id.empty() ? "-" : printable(key.key_id)),
               Cell(std::to_string(key.active_sandboxes)),
               Cell(std::to_string(key.total_sandboxes)),
               Cell(seconds_text(key.metered.cpu_seconds)),
               Cell(seconds_text(key.metered.running_seconds)),
               Cell(gb_seconds_text(key.metered.memory_gb_seconds))});
  }
  table.print();
}

Result<int> show_account(const Globals& globals, Client& client) {
  ATOLL_ASSIGN(AccountUsage usage, client.account_usage());
  if (globals.json)
    print_json(usage.json);
  else
    print_account(usage);
  return 0;
}

Result<int> show_sandbox(const Globals& globals, Client& client, const std::string& sandbox) {
  ATOLL_ASSIGN(SandboxUsage usage, client.usage(sandbox));
  if (globals.json)
    print_json(usage.json);
  else
    print_usage(usage);
  return 0;
}

}  // namespace

Command usage_command() {
  auto sandbox = std::make_shared<std::string>();
  Command command;
  command.name = "usage";
  command.summary = "Show what a sandbox uses and has used; without one, what each key has";
  command.examples = {"atoll usage web", "atoll usage", "atoll usage --json | jq .cpuSeconds"};
  command.arguments = {{"SANDBOX", "id or name", sandbox.get(), false, Complete::Sandbox}};
  command.run = [sandbox](const Globals& globals) {
    return with_client(globals, [&](Client& client) {
      return sandbox->empty() ? show_account(globals, client)
                              : show_sandbox(globals, client, *sandbox);
    });
  };
  return command;
}

}  // namespace atl::cli
