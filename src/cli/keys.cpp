// key, token, whoami: who may do what.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "cli/json_out.h"
#include "cli/report.h"
#include "cli/table.h"
#include "cli/units.h"

namespace atl::cli {
namespace {

using Kind = Column::Kind;

ReadValue size_into(uint64_t& bytes) {
  return [&bytes](const std::string& text) -> Result<void> {
    ATOLL_ASSIGN(bytes, parse_size(text));
    return {};
  };
}

std::vector<Option> quota_flags(KeyQuota& quota) {
  ReadValue cpu = [&quota](const std::string& text) -> Result<void> {
    ATOLL_ASSIGN(quota.cpu_millis, parse_cores(text));
    return {};
  };
  return {{"--max-sandboxes", "N", "most sandboxes that it has at a time", &quota.sandboxes},
          {"--max-cpu", "CORES", "most processor cores of them together", cpu},
          {"--max-memory", "SIZE", "most memory, such as 16g", size_into(quota.memory_bytes)},
          {"--max-disk", "SIZE", "most disk, in whole GiB", size_into(quota.disk_bytes)}};
}

Option expires_flag(std::optional<std::chrono::seconds>& into) {
  ReadValue read = [&into](const std::string& text) -> Result<void> {
    ATOLL_ASSIGN(auto time, parse_duration(text));
    if (time.count() != 0) into = std::chrono::ceil<std::chrono::seconds>(time);
    return {};
  };
  return {"--expires", "TIME", "not valid after so long, such as 30d (default: never)", read};
}

Result<int> create_key(const Globals& globals, Client& client, const CreateKeyRequest& request) {
  ATOLL_ASSIGN(CreatedKey created, client.create_key(request));
  if (globals.json) {
    print_json(created.info.json);
    return 0;
  }
  print_out(created.text + "\n");
  fflush(stdout);
  if (!globals.quiet) {
    fmt::print(stderr, "Key {} of tenant {}. It is shown this once: keep it safe.\n",
               printable(created.info.id), printable(created.info.tenant));
  }
  return 0;
}

Command create_key_command() {
  auto request = std::make_shared<CreateKeyRequest>();
  Command command;
  command.name = "create";
  command.summary = "Make a key and print it, this once";
  command.examples = {
      "atoll key create ci --tenant acme --max-sandboxes 10 --max-memory 16g --expires 30d",
      "ATOLL_API_KEY=$(atoll key create mine --tenant acme)",
      "atoll key create dashboard --role read-only --rate 20"};
  command.options = {{"--role",
                      "ROLE",
                      "admin, member (default) or read-only",
                      &request->role,
                      {"admin", "member", "read-only"}}};
  for (Option& option : quota_flags(request->quota)) command.options.push_back(std::move(option));
  command.options.push_back(
      {"--rate", "N", "most requests in a second", &request->rate_per_second});
  command.options.push_back(expires_flag(request->lifetime));
  command.arguments = {{"NAME", "what to call it; need not be unique", &request->name}};
  command.run = [request](const Globals& globals) {
    return with_client(globals,
                       [&](Client& client) { return create_key(globals, client, *request); });
  };
  return command;
}

std::string of_limit(const std::string& used, const std::string& limit, bool limited) {
  return limited ? used + " / " + limit : used;
}

std::string cores(uint32_t millis) { return fmt::format("{:g}", millis / 1000.0); }

void print_keys(const std::vector<KeyInfo>& keys) {
  Table table({{"ID"},
               {"NAME", Kind::Elastic},
               {"TENANT", Kind::Elastic},
               {"ROLE"},
               {"SANDBOXES", Kind::Right},
               {"CPU", Kind::Right},
               {"MEMORY", Kind::Right},
               {"EXPIRES"}});
  for (const KeyInfo& key : keys) {
    const KeyQuota& most = key.quota;
    table.add(
        {Cell(printable(key.id)), Cell(printable(key.name)), Cell(printable(key.tenant)),
         Cell(key.role),
         Cell(of_limit(std::to_string(key.used.sandboxes), std::to_string(most.sandboxes),
                       most.sandboxes != 0)),
         Cell(of_limit(cores(key.used.cpu_millis), cores(most.cpu_millis), most.cpu_millis != 0)),
         Cell(of_limit(format_size(key.used.memory_bytes), format_size(most.memory_bytes),
                       most.memory_bytes != 0)),
         Cell(key.expires_at.empty() ? "never" : key.expires_at)});
  }
  table.print();
}

Command ls_keys_command() {
  Command command;
  command.name = "ls";
  command.summary = "List keys, with what they use of their quotas";
  command.examples = {"atoll key ls", "atoll key ls --tenant acme --json | jq -r '.[].id'"};
  command.run = [](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_ASSIGN(auto keys, client.keys());
      if (globals.json)
        print_json(join_json(keys));
      else if (!globals.quiet)
        print_keys(keys);
      else
        for (const KeyInfo& key : keys) print_out(key.id + "\n");
      return 0;
    });
  };
  return command;
}

Command rm_key_command() {
  auto id = std::make_shared<std::string>();
  Command command;
  command.name = "rm";
  command.summary = "Revoke a key, at once; its sandboxes stay";
  command.examples = {"atoll key rm 1f0c2a7d90be"};
  command.arguments = {{"ID", "as 'atoll key ls' shows it", id.get()}};
  command.run = [id](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_TRY(client.remove_key(*id));
      if (globals.json)
        print_json(JsonObject().text("removed", *id).take());
      else if (!globals.quiet)
        print_out(*id + "\n");
      return 0;
    });
  };
  return command;
}

}  // namespace

Command key_command() {
  Command command;
  command.name = "key";
  command.summary = "Make, list and revoke API keys";
  command.examples = {"atoll key create ci --tenant acme --max-sandboxes 10 --expires 30d",
                      "atoll key ls"};
  command.commands.push_back(create_key_command());
  command.commands.push_back(ls_keys_command());
  command.commands.push_back(rm_key_command());
  return command;
}

Command token_command() {
  struct State {
    std::string sandbox;
    TokenRequest request;
    unsigned minutes = 0;
  };
  auto state = std::make_shared<State>();
  Command command;
  command.name = "token";
  command.summary = "Make a short-lived token for a part of one sandbox";
  command.examples = {"atoll token web --scope read-only --ttl 15",
                      "atoll token web --scope session --session term-1"};
  command.options = {
      {"--scope",
       "SCOPE",
       "read-only or project: read the sandbox; session: one terminal",
       &state->request.scope,
       {"read-only", "project", "session"}},
      {"--session", "ID", "the terminal, for the scope session", &state->request.session},
      {"--ttl", "MINUTES", "how long it is valid, 1 to 15 (default: 5)", &state->minutes}};
  command.arguments = {{"SANDBOX", "id or name", &state->sandbox, true, Complete::Sandbox}};
  command.run = [state](const Globals& globals) {
    if (state->request.scope.empty()) {
      return report_usage("--scope is required: read-only, project or session");
    }
    if (state->minutes > 15) return report_usage("--ttl: a token is valid for 1 to 15 minutes");
    if (state->minutes != 0) state->request.lifetime = std::chrono::minutes(state->minutes);
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_ASSIGN(Token token, client.create_token(state->sandbox, state->request));
      if (globals.json)
        print_json(token.json);
      else
        print_out(token.text + "\n");
      return 0;
    });
  };
  return command;
}

Command whoami_command() {
  Command command;
  command.name = "whoami";
  command.summary = "Show who the server takes you for";
  command.examples = {"atoll whoami", "atoll whoami --json | jq -r .tenant"};
  command.run = [](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_ASSIGN(Identity who, client.whoami());
      if (globals.json) {
        print_json(who.json);
        return 0;
      }
      print_out(fmt::format("Server  {}\nActor   {}\nTenant  {}{}\nRole    {}\n", client.url(),
                            printable(who.actor), printable(who.tenant),
                            who.all_tenants ? " (sees all)" : "", who.role));
      return 0;
    });
  };
  return command;
}

}  // namespace atl::cli
