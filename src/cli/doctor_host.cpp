#include <fmt/format.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "cli/report.h"

namespace atl::cli {
namespace {

constexpr rlim_t kDescriptors = 65536;
constexpr long kPids = 1 << 20;

Check check_descriptors() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  std::string detail = fmt::format("hard limit {}", limit.rlim_max);
  if (limit.rlim_max == RLIM_INFINITY) return check_ok("descriptors", "unlimited");
  if (limit.rlim_max >= kDescriptors) return check_ok("descriptors", detail);
  return degraded(
      "descriptors", detail + ": room for few sandboxes at once",
      fmt::format("ulimit -Hn {}, or LimitNOFILE={} in the service", kDescriptors, kDescriptors));
}

Check check_pid_max() {
  FILE* file = fopen("/proc/sys/kernel/pid_max", "re");
  long value = 0;
  if (file == nullptr || fscanf(file, "%ld", &value) != 1) value = 0;
  if (file != nullptr) fclose(file);
  std::string detail = fmt::format("{}", value);
  if (value >= kPids) return check_ok("pid_max", detail);
  return degraded("pid_max", detail + ": shared by all sandboxes",
                  fmt::format("sysctl kernel.pid_max={}", kPids * 4));
}

Check check_account(const std::string& name) {
  const passwd* account = getpwnam(name.c_str());
  if (account != nullptr) return check_ok("account", fmt::format("{} ({})", name, account->pw_uid));
  return missing("account", fmt::format("there is no user '{}' for the server to run as", name),
                 "./dev setup, or useradd --system --user-group --shell /usr/sbin/nologin " + name);
}

Result<Client> find_server(const DoctorSettings& settings) {
  Globals globals;
  globals.url = settings.url;
  return make_client(globals);
}

Check check_server(const DoctorSettings& settings) {
  auto client = find_server(settings);
  if (!client) return degraded("server", client.error().message(), "check ATOLL_URL");
  auto health = client->health();
  if (health) return check_ok("server", "answers at " + client->url());
  std::string text = explain(health.error(), client->url());
  size_t advice = text.rfind(" (");
  std::string remedy = advice == text.npos ? "see the server's log"
                                           : text.substr(advice + 2, text.size() - advice - 3);
  return degraded("server", text.substr(0, advice), remedy);
}

// Only a server can try it: it needs a sandbox.
Check check_memory_checkpoints(const DoctorSettings& settings) {
  constexpr const char* kName = "memory checkpoints";
  auto client = find_server(settings);
  Result<MemorySupport> support =
      client ? client->memory_support() : tl::unexpected(client.error());
  if (!support) return degraded(kName, "not tried: only a running server can", "start a server");
  if (support->available) return check_ok(kName, "criu " + support->version);
  return degraded(kName, support->reason + ": no checkpoint, fork --memory or pause --disk",
                  "packaging/fetch-criu /usr/local/lib/atoll/criu");
}

}  // namespace

std::vector<Check> host_checks(const DoctorSettings& settings) {
  return {check_descriptors(), check_pid_max(), check_account(settings.user),
          check_server(settings), check_memory_checkpoints(settings)};
}

}  // namespace atl::cli
