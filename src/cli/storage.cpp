// `atoll storage`: the pool that holds sandboxes' files.
#include <fmt/format.h>

#include <memory>

#include "cli/json_out.h"
#include "cli/report.h"
#include "cli/units.h"

namespace atl::cli {
namespace {

int print_storage(const Globals& globals, const StorageInfo& storage) {
  if (globals.json) {
    print_json(JsonObject()
                   .number("sizeBytes", static_cast<int64_t>(storage.bytes))
                   .number("freeBytes", static_cast<int64_t>(storage.free_bytes))
                   .number("hostFreeBytes", static_cast<int64_t>(storage.host_free_bytes))
                   .flag("growable", storage.growable)
                   .text("lacking", storage.lacking)
                   .take());
    return 0;
  }
  print_out(fmt::format("Pool       {}, {} free\n", format_size(storage.bytes),
                        format_size(storage.free_bytes)));
  print_out(fmt::format("Disk       {} free\n", format_size(storage.host_free_bytes)));
  if (!storage.lacking.empty()) {
    print_out(fmt::format("Degraded   no snapshots, forks and disk limits: {}\n", storage.lacking));
  }
  return 0;
}

Command show_command() {
  Command command;
  command.name = "show";
  command.summary = "Show how full the pool is";
  command.examples = {"atoll storage show", "atoll storage show --json"};
  command.run = [](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_ASSIGN(StorageInfo storage, client.storage());
      return print_storage(globals, storage);
    });
  };
  return command;
}

Command grow_command() {
  auto bytes = std::make_shared<uint64_t>(0);
  ReadValue size = [bytes](const std::string& text) -> Result<void> {
    ATOLL_ASSIGN(*bytes, parse_size(text));
    return {};
  };
  Command command;
  command.name = "grow";
  command.summary = "Make the pool larger, while it is used; storage_size keeps it so elsewhere";
  command.examples = {"atoll storage grow 200g"};
  command.arguments = {{"SIZE", "its new size, such as 200g", size}};
  command.run = [bytes](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_ASSIGN(StorageInfo storage, client.storage(*bytes));
      return print_storage(globals, storage);
    });
  };
  return command;
}

}  // namespace

Command storage_command() {
  Command command;
  command.name = "storage";
  command.summary = "The pool that holds sandboxes' files and snapshots: show, grow";
  command.examples = {"atoll storage show", "atoll storage grow 200g"};
  command.commands.push_back(show_command());
  command.commands.push_back(grow_command());
  return command;
}

}  // namespace atl::cli
