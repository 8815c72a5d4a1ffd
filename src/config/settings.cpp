#include "config/settings.h"

#include <algorithm>
#include <array>

namespace atl::config {
namespace {

constexpr std::array<std::string_view, 2> kOnExit = {"keep", "stop"};
constexpr std::array<std::string_view, 3> kSteering = {"auto", "program", "redirection"};
constexpr std::array<std::string_view, 4> kLevels = {"debug", "info", "warning", "error"};
constexpr std::array<std::string_view, 2> kFormats = {"json", "text"};

// A function to the member that a path names: ATOLL_AT(tls.key).
#define ATOLL_AT(path) [](Config& config) -> Slot { return &config.path; }

constexpr auto kSettings = std::to_array<Setting>({
    {"data_dir", Kind::Path, "/var/lib/atoll", "layers, templates, sandboxes' files, state",
     ATOLL_AT(data_dir)},
    {"run_dir", Kind::Path, "/run/atoll",
     "sockets; keep it short, a Unix socket's path has at most 107 bytes", ATOLL_AT(run_dir)},
    {"listen", Kind::Endpoint, "127.0.0.1:7777", "TCP port beside the Unix socket, or none",
     ATOLL_AT(listen)},
    {"tls.certificate", Kind::File, "", "certificate chain (PEM) for the TCP port",
     ATOLL_AT(tls.certificate)},
    {"tls.key", Kind::File, "", "the certificate's private key (PEM)", ATOLL_AT(tls.key)},
    {"public_url", Kind::Url, "", "what URLs in answers begin with; empty: the TCP port's",
     ATOLL_AT(public_url)},
    {"allowed_origin", Kind::Url, "",
     "a web site whose pages may open terminals here, beside the server's own",
     ATOLL_AT(allowed_origin)},
    {"preview_domain", Kind::Name, "localhost",
     "below which sandboxes' ports have their names, PORT-ID.DOMAIN; one that serves nothing else",
     ATOLL_AT(preview_domain)},
    {"cgroup", Kind::Name, "atoll", "name of our subtree in every cgroup hierarchy",
     ATOLL_AT(cgroup)},
    {"user", Kind::Name, "atoll", "account of the part without privileges", ATOLL_AT(user)},
    {"pool", Kind::Count, "4", "whole sandboxes to keep ready for a template; 0: none",
     ATOLL_AT(pool)},
    {"reserve", Kind::Count, "4", "blank slots to keep ready for any template", ATOLL_AT(reserve)},
    {"storage_size", Kind::Size, "0",
     "the image that holds sandboxes' files; 0: half of what is free; it grows, never shrinks",
     ATOLL_AT(storage_bytes)},
    {"criu", Kind::File, "",
     "where criu is, for memory checkpoints; empty: `criu` beside the program, in "
     "/usr/local/lib/atoll, /usr/lib/atoll or /var/cache/atoll",
     ATOLL_AT(criu)},
    {"memory_images_size", Kind::Size, "20g",
     "what all memory checkpoints may take together; 0: no limit", ATOLL_AT(memory_images_bytes)},
    {"on_exit", Kind::Choice, "keep", "keep sandboxes running at a graceful end, or stop them",
     ATOLL_AT(on_exit), kOnExit},
    {"log_level", Kind::Choice, "info", "least severe entries to log", ATOLL_AT(log_level),
     kLevels},
    {"log_format", Kind::Choice, "json", "one JSON object a line, or text for people",
     ATOLL_AT(log_format), kFormats},
    {"limits.default.cpu", Kind::Cores, "0", "a sandbox's cores; 0: all",
     ATOLL_AT(default_limits.cpu_millis)},
    {"limits.default.memory", Kind::Size, "2g", "a sandbox's memory; 0: all",
     ATOLL_AT(default_limits.memory_bytes)},
    {"limits.default.disk", Kind::Size, "0", "a sandbox's disk; 0: what the host has",
     ATOLL_AT(default_limits.disk_bytes)},
    {"limits.default.pids", Kind::Count, "1024", "a sandbox's processes; 0: no limit",
     ATOLL_AT(default_limits.pids)},
    {"limits.rate_per_second", Kind::Count, "0", "requests of one key in a second; 0: no limit",
     ATOLL_AT(rate_per_second)},
    {"limits.max_sandboxes", Kind::Count, "0", "sandboxes on this host; 0: no limit",
     ATOLL_AT(max_sandboxes)},
    {"lifetimes.max", Kind::Duration, "never", "a sandbox ends after this time",
     ATOLL_AT(lifetimes.max_s)},
    {"lifetimes.idle", Kind::Duration, "never", "a sandbox ends after this time without use",
     ATOLL_AT(lifetimes.idle_s)},
    {"lifetimes.delete_after_stop", Kind::Duration, "never",
     "a stopped sandbox is deleted after this time", ATOLL_AT(lifetimes.delete_after_stop_s)},
    {"audit.enabled", Kind::Switch, "true", "keep a log of who did what in DATA/audit",
     ATOLL_AT(audit)},
    {"metrics.public", Kind::Switch, "false", "answer GET /metrics over TCP without a key",
     ATOLL_AT(metrics_public)},
    {"events.keep_hours", Kind::Count, "24", "how long events can be read again",
     ATOLL_AT(events_keep_hours)},
    {"dns_upstream", Kind::Text, "",
     "name server for sandboxes, ADDRESS:PORT; empty: those of the host", ATOLL_AT(dns_upstream)},
    {"egress_allow_private", Kind::Text, "",
     "private subnets that sandboxes' policies may allow, with commas between; empty: none",
     ATOLL_AT(egress_allow_private)},
    {"egress_steering", Kind::Choice, "auto",
     "what brings sandboxes' connections to us: a BPF program, redirection by nf_tables, or auto "
     "for the first that works",
     ATOLL_AT(egress_steering), kSteering},
    {"egress_ca", Kind::File, "",
     "certificate authorities (PEM) of servers that secrets are sent to; empty: the system's",
     ATOLL_AT(egress_ca)},
});

#undef ATOLL_AT

std::string derive(std::string_view prefix, std::string_view key, char between) {
  std::string name(prefix);
  for (char c : key) name.push_back(c == '.' || c == '_' ? between : c);
  return name;
}

std::string joined(std::span<const std::string_view> texts, std::string_view between) {
  std::string all;
  for (std::string_view text : texts) all.append(all.empty() ? "" : between).append(text);
  return all;
}

std::string_view kind_text(const Setting& setting) {
  switch (setting.kind) {
    case Kind::Name:
    case Kind::Text:
    case Kind::Path:
    case Kind::File:
    case Kind::Endpoint:
    case Kind::Url:
      return "text";
    case Kind::Choice:
      return "one of";
    case Kind::Count:
      return "whole number";
    case Kind::Switch:
      return "true or false";
    case Kind::Size:
      return "size, `\"512m\"`";
    case Kind::Cores:
      return "number";
    case Kind::Duration:
      return "time, `\"1h30m\"`";
  }
  return "";
}

}  // namespace

std::span<const Setting> all_settings() { return kSettings; }

const Setting* find_setting(std::string_view key) {
  auto found = std::find_if(kSettings.begin(), kSettings.end(),
                            [&](const Setting& setting) { return setting.key == key; });
  return found == kSettings.end() ? nullptr : &*found;
}

std::string flag_of(const Setting& setting) { return derive("--", setting.key, '-'); }

std::string environment_of(const Setting& setting) {
  std::string name = derive("ATOLL_", setting.key, '_');
  for (char& c : name) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return name;
}

std::string value_name(const Setting& setting) {
  switch (setting.kind) {
    case Kind::Name:
      return "NAME";
    case Kind::Text:
      return "TEXT";
    case Kind::Choice:
      return joined(setting.choices, "|");
    case Kind::Path:
      return "DIR";
    case Kind::File:
      return "FILE";
    case Kind::Endpoint:
      return "ADDR:PORT";
    case Kind::Url:
      return "URL";
    case Kind::Count:
      return "N";
    case Kind::Switch:
      return "BOOL";
    case Kind::Size:
      return "SIZE";
    case Kind::Cores:
      return "CORES";
    case Kind::Duration:
      return "TIME";
  }
  return "";
}

std::string settings_markdown() {
  std::string out =
      "| key | kind | default | environment | flag | meaning |\n|---|---|---|---|---|---|\n";
  for (const Setting& setting : kSettings) {
    std::string kind(kind_text(setting));
    for (std::string_view choice : setting.choices) kind.append(" `").append(choice).append("`");
    std::string fallback =
        setting.fallback.empty() ? "" : "`" + std::string(setting.fallback) + "`";
    out.append("| `").append(setting.key).append("` | ").append(kind).append(" | ");
    out.append(fallback).append(" | `").append(environment_of(setting)).append("` | `");
    out.append(flag_of(setting)).append("` | ").append(setting.help).append(" |\n");
  }
  return out;
}

}  // namespace atl::config
