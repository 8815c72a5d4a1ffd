#include "client/decode.h"

#include <time.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>

namespace atl::client {
namespace {

namespace json = boost::json;

int32_t integer_of(const json::value& object, std::string_view name, int32_t missing) {
  const json::value& found = member(object, name);
  if (found.is_int64()) return static_cast<int32_t>(found.get_int64());
  if (found.is_uint64()) return static_cast<int32_t>(found.get_uint64());
  return missing;
}

std::vector<std::string> texts_of(const json::value& object, std::string_view name) {
  std::vector<std::string> texts;
  const json::value& found = member(object, name);
  if (!found.is_array()) return texts;
  for (const json::value& item : found.get_array()) {
    if (item.is_string()) texts.emplace_back(item.get_string());
  }
  return texts;
}

std::map<std::string, std::string> text_map_of(const json::value& object, std::string_view name) {
  std::map<std::string, std::string> texts;
  const json::value& found = member(object, name);
  if (!found.is_object()) return texts;
  for (const auto& item : found.get_object()) {
    if (item.value().is_string()) texts.emplace(item.key(), item.value().get_string());
  }
  return texts;
}

Limits to_limits(const json::value& value) {
  Limits limits;
  limits.cpu_millis = static_cast<uint32_t>(std::lround(real_of(value, "cpuCores") * 1000));
  limits.memory_bytes = static_cast<uint64_t>(real_of(value, "memoryMB") * (1u << 20));
  limits.disk_bytes = static_cast<uint64_t>(real_of(value, "diskGB") * (1u << 30));
  limits.pids = static_cast<uint32_t>(number_of(value, "pids"));
  return limits;
}

// "SIGTERM" or 15, whichever the server sends; names are for people.
int32_t exit_signal_of(const json::value& value) { return integer_of(value, "exitSignal", 0); }

FileKind kind_of(const json::value& value) {
  if (flag_of(value, "isSymlink")) return FileKind::Symlink;
  if (flag_of(value, "isDir")) return FileKind::Directory;
  return flag_of(value, "isFile") ? FileKind::File : FileKind::Other;
}

uint32_t to_mode(const std::string& octal) {
  uint32_t mode = 0;
  std::from_chars(octal.data(), octal.data() + octal.size(), mode, 8);
  return mode;
}

}  // namespace

Result<json::value> parse_answer(std::string_view text) {
  boost::system::error_code bad;
  json::value value = json::parse(text, bad);
  if (bad) return fail(ErrorCode::Internal, "the server's answer is not JSON: " + bad.message());
  return value;
}

const json::value& member(const json::value& object, std::string_view name) {
  static const json::value kNull;
  const json::object* fields = object.if_object();
  const json::value* found = fields == nullptr ? nullptr : fields->if_contains(name);
  return found == nullptr ? kNull : *found;
}

const json::value& unwrap(const json::value& answer) {
  const json::value& data = member(answer, "data");
  return data.is_null() ? answer : data;
}

std::string text_of(const json::value& object, std::string_view name) {
  const json::value& found = member(object, name);
  return found.is_string() ? std::string(found.get_string()) : std::string();
}

uint64_t number_of(const json::value& object, std::string_view name) {
  const json::value& found = member(object, name);
  if (found.is_uint64()) return found.get_uint64();
  if (found.is_int64()) return static_cast<uint64_t>(std::max<int64_t>(found.get_int64(), 0));
  return found.is_double() ? static_cast<uint64_t>(std::max(found.get_double(), 0.0)) : 0;
}

double real_of(const json::value& object, std::string_view name) {
  const json::value& found = member(object, name);
  if (found.is_double()) return found.get_double();
  if (found.is_int64()) return static_cast<double>(found.get_int64());
  return found.is_uint64() ? static_cast<double>(found.get_uint64()) : 0;
}

bool flag_of(const json::value& object, std::string_view name) {
  const json::value& found = member(object, name);
  return found.is_bool() && found.get_bool();
}

Stream to_stream(std::string_view name) {
  return name == "stderr" ? Stream::Stderr : Stream::Stdout;
}

Sandbox to_sandbox(const json::value& value) {
  Sandbox sandbox;
  sandbox.id = text_of(value, "id");
  sandbox.name = text_of(value, "name");
  sandbox.status = text_of(value, "status");
  sandbox.reason = text_of(value, "reason");
  sandbox.cause = text_of(value, "cause");
  sandbox.tenant = text_of(value, "tenant");
  sandbox.template_name = text_of(value, "template");
  sandbox.profile = text_of(value, "profile");
  sandbox.user = text_of(value, "user");
  sandbox.env_names = texts_of(value, "envNames");
  sandbox.limits = to_limits(member(value, "resources"));
  sandbox.metadata = text_map_of(value, "metadata");
  sandbox.created_at = text_of(value, "createdAt");
  sandbox.started_at = text_of(value, "startedAt");
  sandbox.last_activity_at = text_of(value, "lastActivityAt");
  sandbox.expires_at = text_of(value, "expiresAt");
  const json::value& isolation = member(value, "isolation");
  sandbox.isolation = {text_of(isolation, "driver"), text_of(isolation, "boundary"),
                       texts_of(isolation, "degraded")};
  sandbox.runtime_url = text_of(member(value, "connection"), "runtimeUrl");
  const json::value& timings = member(value, "timings");
  sandbox.timings = {text_of(timings, "source"), number_of(timings, "totalMicroseconds"),
                     number_of(timings, "overlayMicroseconds"),
                     number_of(timings, "attachMicroseconds")};
  sandbox.json = json::serialize(value);
  return sandbox;
}

ProcessInfo to_process(const json::value& value) {
  ProcessInfo process;
  process.pid = integer_of(value, "pid", 0);
  process.label = text_of(value, "command");
  process.cwd = text_of(value, "cwd");
  process.user = text_of(value, "user");
  process.running = flag_of(value, "running");
  process.pty = flag_of(value, "pty");
  process.exit_code = integer_of(value, "exitCode", -1);
  process.exit_signal = exit_signal_of(value);
  process.timed_out = flag_of(value, "timedOut");
  process.started_at_ms = static_cast<uint64_t>(parse_time_ms(text_of(value, "startedAt")));
  process.ended_at_ms = static_cast<uint64_t>(parse_time_ms(text_of(value, "exitedAt")));
  process.cpu_us = number_of(value, "cpuMicroseconds");
  process.stdout_bytes = number_of(value, "stdoutBytes");
  process.stderr_bytes = number_of(value, "stderrBytes");
  return process;
}

FileEntry to_entry(const json::value& value) {
  FileEntry entry;
  entry.name = text_of(value, "name");
  entry.path = text_of(value, "path");
  entry.link_target = text_of(value, "linkTarget");
  entry.owner = text_of(value, "owner");
  entry.group = text_of(value, "group");
  entry.kind = kind_of(value);
  entry.mode = to_mode(text_of(value, "permissions"));
  entry.uid = static_cast<uint32_t>(number_of(value, "uid"));
  entry.gid = static_cast<uint32_t>(number_of(value, "gid"));
  entry.size = number_of(value, "size");
  entry.modified_ms = parse_time_ms(text_of(value, "modTime"));
  entry.accessed_ms = parse_time_ms(text_of(value, "accessTime"));
  return entry;
}

Usage to_usage(const json::value& value) {
  Usage usage;
  usage.memory_bytes = number_of(value, "memoryBytes");
  usage.memory_peak_bytes = number_of(value, "memoryPeakBytes");
  usage.cpu_us = number_of(value, "cpuMicroseconds");
  usage.pids = static_cast<uint32_t>(number_of(value, "processes"));
  usage.oom_kills = number_of(value, "oomKills");
  return usage;
}

TemplateInfo to_template(const json::value& value) {
  TemplateInfo info{text_of(value, "name"), text_of(value, "createdAt"), text_of(value, "digest")};
  info.version = static_cast<uint32_t>(number_of(value, "version"));
  info.layers = number_of(value, "layers");
  info.bytes = number_of(value, "sizeBytes");
  info.in_use = number_of(value, "inUse");
  info.tags = texts_of(value, "tags");
  return info;
}

SnapshotInfo to_snapshot(const json::value& value) {
  SnapshotInfo snapshot;
  snapshot.id = text_of(value, "snapshotId");
  snapshot.sandbox = text_of(value, "sandboxId");
  snapshot.sandbox_name = text_of(value, "sandboxName");
  snapshot.parent = text_of(value, "parent");
  snapshot.message = text_of(value, "message");
  snapshot.tags = texts_of(value, "tags");
  snapshot.created_at = text_of(value, "createdAt");
  snapshot.bytes = number_of(value, "sizeBytes");
  snapshot.frozen_us = number_of(value, "frozenMicroseconds");
  snapshot.total_us = number_of(value, "totalMicroseconds");
  snapshot.json = json::serialize(value);
  return snapshot;
}

SystemInfo to_system(const json::value& value) {
  SystemInfo system;
  system.version = text_of(value, "version");
  system.backend = text_of(value, "backend");
  system.degraded = texts_of(value, "degraded");
  system.sandboxes = number_of(value, "sandboxes");
  if (const json::object* pool = member(value, "pool").if_object()) {
    for (const auto& item : *pool) {
      std::string name(item.key());
      system.pool[name] = number_of(member(value, "pool"), name);
    }
  }
  system.json = json::serialize(value);
  return system;
}

ExecResult to_exec_result(const json::value& value) {
  ExecResult result;
  result.exit_code = integer_of(value, "exitCode", -1);
  result.exit_signal = exit_signal_of(value);
  result.pid = integer_of(value, "pid", 0);
  result.timed_out = flag_of(value, "timedOut");
  result.stdout_data = text_of(value, "stdout");
  result.stderr_data = text_of(value, "stderr");
  result.stdout_lost = number_of(value, "stdoutLost");
  result.stderr_lost = number_of(value, "stderrLost");
  result.duration = std::chrono::microseconds(number_of(value, "durationMicroseconds"));
  return result;
}

SearchMatch to_match(const json::value& value) {
  SearchMatch match;
  match.path = text_of(value, "path");
  match.line = static_cast<uint32_t>(number_of(value, "line"));
  match.column = static_cast<uint32_t>(number_of(value, "column"));
  match.text = text_of(value, "text");
  match.before = texts_of(value, "before");
  match.after = texts_of(value, "after");
  return match;
}

int64_t parse_time_ms(std::string_view text) {
  std::string copy(text);
  tm parts{};
  const char* rest = strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) return 0;
  int64_t milliseconds = int64_t{timegm(&parts)} * 1000;
  if (*rest != '.') return milliseconds;
  int64_t weight = 100;
  for (rest++; *rest >= '0' && *rest <= '9'; rest++, weight /= 10) {
    milliseconds += (*rest - '0') * weight;
  }
  return milliseconds;
}

}  // namespace atl::client
