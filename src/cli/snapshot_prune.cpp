// `atoll snapshot prune`.
#include <memory>

#include "cli/json_out.h"
#include "cli/report.h"
#include "cli/snapshot_commands.h"
#include "cli/units.h"

namespace atl::cli {

Command prune_snapshots_command() {
  auto request = std::make_shared<PruneRequest>();
  ReadValue newest = [request](const std::string& text) -> Result<void> {
    if (text.empty() || text.size() > 6 || text.find_first_not_of("0123456789") != text.npos) {
      return fail(ErrorCode::InvalidArgument, "'" + text + "' is not a number of snapshots");
    }
    request->newest = static_cast<uint32_t>(std::stoul(text));
    return {};
  };
  ReadValue younger = [request](const std::string& text) -> Result<void> {
    ATOLL_ASSIGN(auto time, parse_duration(text));
    request->younger_than = std::chrono::ceil<std::chrono::seconds>(time);
    return {};
  };
  Command command;
  command.name = "prune";
  command.summary = "Remove snapshots that are neither new nor tagged";
  command.examples = {"atoll snapshot prune --keep 5 --younger-than 7d",
                      "atoll snapshot prune web --keep 0 --dry-run"};
  command.options = {
      {"--keep", "N", "the newest N of each sandbox stay", newest},
      {"--younger-than", "TIME", "those younger than this stay, such as 7d", younger},
      {"--dry-run", "", "only say which would go", &request->dry_run}};
  command.arguments = {
      {"SANDBOX", "only this one's (default: all)", &request->sandbox, false, Complete::Sandbox}};
  command.run = [request](const Globals& globals) {
    if (!request->newest && !request->younger_than) {
      return report_usage("say what stays: --keep N, --younger-than TIME or both");
    }
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_ASSIGN(auto removed, client.prune_snapshots(*request));
      if (globals.json) print_json(join_json(removed));
      for (const SnapshotInfo& snapshot : removed) {
        if (!globals.json && !globals.quiet) print_out(snapshot.id + "\n");
      }
      return 0;
    });
  };
  return command;
}

}  // namespace atl::cli
