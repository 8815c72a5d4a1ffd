#include <fmt/format.h>
#include <stdlib.h>

#include <memory>

#include "cli/exec_options.h"
#include "cli/network_options.h"
#include "cli/report.h"
#include "cli/sandbox_options.h"
#include "cli/units.h"

namespace atl::cli {

std::vector<Option> limit_flags(Limits& limits) {
  ReadValue cpu = [&limits](const std::string& text) -> Result<void> {
    ATOLL_ASSIGN(limits.cpu_millis, parse_cores(text));
    return {};
  };
  ReadValue memory = [&limits](const std::string& text) -> Result<void> {
    ATOLL_ASSIGN(limits.memory_bytes, parse_size(text));
    return {};
  };
  return {{"--cpu", "CORES", "most processor cores, such as 0.5 or 2 (default: all)", cpu},
          {"--memory", "SIZE", "most memory, such as 512m (default: 2g)", memory},
          {"--pids", "N", "most processes and threads (default: 1024)", &limits.pids}};
}

Option disk_flag(Limits& limits) {
  ReadValue read = [&limits](const std::string& text) -> Result<void> {
    ATOLL_ASSIGN(limits.disk_bytes, parse_size(text));
    return {};
  };
  return {"--disk", "SIZE", "most it may write, such as 2g (default: what the pool has)", read};
}

Option profile_flag(std::string& profile) {
  return {"--profile",
          "PROFILE",
          "dev (default), or strict: without any capability",
          &profile,
          {"dev", "strict"}};
}

Option template_flag(std::string& name) {
  return {"--template", "NAME", "what it starts from (default: base)",
          &name,        {},     Complete::Template};
}

static Option seconds_flag(std::string flags, std::string help,
                           std::optional<std::chrono::seconds>& into) {
  ReadValue read = [&into](const std::string& text) -> Result<void> {
    ATOLL_ASSIGN(auto time, parse_duration(text));
    into = std::chrono::ceil<std::chrono::seconds>(time);
    return {};
  };
  return {std::move(flags), "TIME", std::move(help), read};
}

Option lifetime_flag(std::optional<std::chrono::seconds>& into) {
  return seconds_flag("--timeout", "stop it so long after its start, such as 1h (default: never)",
                      into);
}

Option idle_flag(std::optional<std::chrono::seconds>& into) {
  return seconds_flag("--idle-timeout", "stop it when unused for so long (default: never)", into);
}

Option delete_after_flag(std::optional<std::chrono::seconds>& into) {
  return seconds_flag("--delete-after", "delete it when stopped for so long (default: never)",
                      into);
}

Option metadata_flag(std::map<std::string, std::string>& metadata) {
  ReadValue read = [&metadata](const std::string& text) -> Result<void> {
    ATOLL_ASSIGN(auto pair, parse_assignment(text));
    metadata[pair.first] = pair.second;
    return {};
  };
  return {"-l,--label", "KEY=VALUE", "a note of yours that inspect shows (repeatable)", read};
}

std::string display_name(const Sandbox& sandbox) {
  return sandbox.name.empty() ? sandbox.id : sandbox.name;
}

Result<int> print_sandbox(const Globals& globals, const Result<Sandbox>& sandbox) {
  if (!sandbox) return tl::unexpected(sandbox.error());
  if (globals.json)
    print_json(sandbox->json);
  else
    print_out(display_name(*sandbox) + "\n");
  return 0;
}

// What it finds inside.
static std::vector<Option> content_flags(CreateRequest& request) {
  GitSource& git = request.git;
  return {{"--secret", "NAME", "a secret that its commands get as a variable (repeatable)",
           &request.secrets},
          {"--git", "URL",
           "clone this repository into /workspace, with the token in ATOLL_GIT_TOKEN", &git.url},
          {"--git-ref", "REF", "a branch, tag or commit of it", &git.ref},
          {"--git-depth", "N", "only so many commits of it (default: all)", &git.depth}};
}

Command create_command() {
  struct State {
    CreateRequest request;
    NetworkFlags network;
    bool no_pool = false;
    bool no_auto_resume = false;
  };
  auto state = std::make_shared<State>();
  CreateRequest& request = state->request;
  Command command;
  command.name = "create";
  command.summary = "Make a sandbox and print its name or id";
  command.examples = {
      "atoll create --name web --cpu 1 --memory 512m --disk 2g --env A=1 --timeout 1h",
      "id=$(atoll create --template base)",
      "atoll create --profile strict --user nobody --idle-timeout 10m --delete-after 7d",
      "atoll create --git https://github.com/you/app --git-depth 1 --allow github.com",
      "atoll create --allow '*.pypi.org' --inject 'api.openai.com: Authorization: Bearer ${KEY}'"};
  command.options = {{"--name", "NAME", "to call it by (default: only an id)", &request.name},
                     template_flag(request.template_name),
                     {"--from-snapshot", "SNAPSHOT", "start from this state of another sandbox",
                      &request.from_snapshot}};
  for (Option& option : limit_flags(request.limits)) command.options.push_back(std::move(option));
  command.options.push_back(disk_flag(request.limits));
  command.options.push_back(env_flag(request.env));
  command.options.push_back(lifetime_flag(request.max_lifetime));
  command.options.push_back(idle_flag(request.idle_timeout));
  command.options.push_back({"--no-auto-resume", "",
                             "after an idle stop, wait for 'atoll start' and not for any use",
                             &state->no_auto_resume});
  command.options.push_back(delete_after_flag(request.delete_after_stopped));
  for (Option& option : content_flags(request)) command.options.push_back(std::move(option));
  for (Option& option : network_flags(state->network)) command.options.push_back(std::move(option));
  command.options.push_back(profile_flag(request.profile));
  command.options.push_back({"-u,--user", "USER",
                             "who its commands run as (default: root, of the sandbox only)",
                             &request.user});
  command.options.push_back(metadata_flag(request.metadata));
  command.options.push_back(
      {"--history", "", "keep the state before every command, to undo it", &request.history});
  command.options.push_back({"--ephemeral", "",
                             "faster: its files need not survive a crash of the host",
                             &request.ephemeral});
  command.options.push_back(
      {"--no-pool", "", "build it now, not from the warm pool", &state->no_pool});
  command.options.push_back({"--key", "KEY", "made once: the same key gives the same sandbox again",
                             &request.idempotency_key});
  command.run = [state](const Globals& globals) {
    GitSource& git = state->request.git;
    // Not an option: everybody can see those.
    if (const char* token = getenv("ATOLL_GIT_TOKEN")) git.token = token;
    if (git.url.empty() && (!git.ref.empty() || git.depth != 0)) {
      return report_usage("--git-ref and --git-depth need --git URL");
    }
    auto network = state->network.policy();
    if (!network) return report(network.error());
    state->request.network = std::move(*network);
    state->request.allow_pool = !state->no_pool;
    state->request.auto_resume = !state->no_auto_resume;
    return with_client(globals, [&](Client& client) {
      auto made = client.create(state->request);
      // The clone goes on behind the answer: the next command wants its files, or its failure.
      bool cloning = made && made->status == "provisioning";
      if (cloning) made = client.wait_for(made->id, "running", {});
      return print_sandbox(globals, made);
    });
  };
  return command;
}

}  // namespace atl::cli
