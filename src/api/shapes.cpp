#include "api/shapes.h"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "base/json_escape.h"

namespace atl::api {

namespace json = boost::json;

std::string_view name_of(Stream stream) { return stream == Stream::Stderr ? "stderr" : "stdout"; }

std::string success(json::value data) {
  return json::serialize(json::object{{"success", true}, {"data", std::move(data)}});
}

json::value plain_number(double value) {
  auto whole = static_cast<int64_t>(value);
  return static_cast<double>(whole) == value ? json::value(whole) : json::value(value);
}

json::object resources_json(const Limits& limits) {
  return {{"cpuCores", plain_number(limits.cpu_millis / 1000.0)},
          {"memoryMB", limits.memory_bytes >> 20},
          {"diskGB", plain_number(static_cast<double>(limits.disk_bytes) / (1u << 30))},
          {"pids", limits.pids}};
}

namespace {

json::object timings_json(const sandbox::Sandbox& sandbox) {
  static constexpr std::string_view kSources[] = {"pool", "cold", "reattached"};
  json::object timings{{"source", kSources[static_cast<int>(sandbox.source)]},
                       {"totalMicroseconds", sandbox.create_us}};
  if (sandbox.handle != nullptr && sandbox.source == sandbox::Source::Cold) {
    BuildTimings build = sandbox.handle->timings();
    timings["launcherMicroseconds"] = build.total_us;
    timings["overlayMicroseconds"] = build.overlay_us;
    timings["attachMicroseconds"] = build.attach_us;
  }
  return timings;
}

}  // namespace

json::object isolation_json(const Context& context) {
  json::array degraded;
  for (const std::string& item : context.manager.backend().degraded()) {
    degraded.emplace_back(item);
  }
  return {{"driver", context.manager.backend().name()},
          {"boundary", "kernel"},
          {"degraded", std::move(degraded)}};
}

json::object driver_json(const Context& context) {
  return {{"type", context.manager.backend().name()},
          {"available", true},
          {"version", context.service.settings.version},
          {"capabilities", json::object{{"criu", false},
                                        {"gpu", false},
                                        {"vsock", false},
                                        {"snapshots", true},
                                        {"userManagement", false},
                                        {"networkIsolation", true}}}};
}

namespace {

// Who may change a sandbox may also speak to its runtime with the bearer made for that.
json::object connection_json(const Context& context, const sandbox::Record& record) {
  const std::string& base = context.service.settings.base_url;
  std::string url = base + "/runtime/" + record.id;
  json::object connection{{"runtimeUrl", url}, {"sidecarUrl", url}};
  if (context.who.role == auth::Role::ReadOnly) return connection;
  connection["authToken"] = context.service.tokens.runtime_token(record.id, record.generation);
  if (record.spec.max_lifetime_s != 0 && record.ended_at_ms == 0) {
    connection["authTokenExpiresAt"] =
        iso_time(record.started_at_ms + int64_t{record.spec.max_lifetime_s} * 1000);
  }
  return connection;
}

}  // namespace

// In a word; the whole is at /network.
static std::string_view network_summary(const NetworkPolicy& policy) {
  if (policy.mode == NetworkPolicy::Mode::DenyAll) return "deny-all";
  return policy.mode == NetworkPolicy::Mode::AllowAll ? "allow-all" : "rules";
}

json::object sandbox_json(const Context& context, const sandbox::Sandbox& sandbox) {
  const sandbox::Record& record = sandbox.record;
  const sandbox::Spec& spec = record.spec;
  json::object metadata;
  for (const auto& [key, value] : spec.metadata) metadata[key] = value;
  json::array env_names;
  for (const auto& [key, value] : spec.env) env_names.emplace_back(key);
  json::object object{
      {"id", record.id},
      {"name", spec.name.empty() ? json::value(nullptr) : json::value(spec.name)},
      {"status", sandbox::to_string(record.status)},
      {"reason", record.reason},
      {"cause", sandbox::to_string(record.cause)},
      {"tenant", record.owner.tenant},
      {"template", spec.template_name},
      {"profile", spec.profile == Profile::Strict ? "strict" : "dev"},
      {"user", spec.user},
      {"envNames", std::move(env_names)},
      {"resources", resources_json(spec.limits)},
      {"metadata", std::move(metadata)},
      {"ephemeral", spec.ephemeral},
      {"history", spec.history},
      {"maxLifetimeSeconds", spec.max_lifetime_s},
      {"idleTimeoutSeconds", spec.idle_timeout_s},
      {"deleteAfterStoppedSeconds", spec.delete_after_stopped_s},
      {"autoResume", spec.auto_resume},
      {"secrets", json::array(spec.secrets.begin(), spec.secrets.end())},
      {"network", network_summary(spec.network)},
      {"createdAt", iso_time(record.created_at_ms)},
      {"startedAt", iso_time(record.started_at_ms)},
      {"lastActivityAt", iso_time(sandbox.last_activity_ms)},
      {"isolation", isolation_json(context)},
      {"timings", timings_json(sandbox)},
  };
  if (spec.max_lifetime_s != 0) {
    object["expiresAt"] = iso_time(record.started_at_ms + int64_t{spec.max_lifetime_s} * 1000);
  }
  if (record.ended_at_ms != 0) object["endedAt"] = iso_time(record.ended_at_ms);
  if (record.status == sandbox::Status::Failed) object["error"] = record.reason;
  if (!spec.git.url.empty())
    object["git"] = json::object{{"url", spec.git.url}, {"ref", spec.git.ref}};
  if (!context.service.settings.base_url.empty()) {
    object["connection"] = connection_json(context, record);
  }
  return object;
}

json::object snapshot_json(const sandbox::Snapshot& snapshot) {
  json::object object{
      {"snapshotId", snapshot.id},
      {"sandboxId", snapshot.source.id},
      {"sandboxName", nullptr},
      {"template", snapshot.source.spec.template_name},
      {"parent", nullptr},
      {"message", snapshot.message},
      {"tags", json::array(snapshot.tags.begin(), snapshot.tags.end())},
      {"paths", json::array()},
      {"createdAt", iso_time(snapshot.created_at_ms)},
      {"sizeBytes", snapshot.bytes},
      {"frozenMicroseconds", snapshot.frozen_us},
      {"totalMicroseconds", snapshot.total_us},
  };
  if (!snapshot.source.spec.name.empty()) object["sandboxName"] = snapshot.source.spec.name;
  if (!snapshot.parent.empty()) object["parent"] = snapshot.parent;
  if (snapshot.expires_at_ms != 0) object["expiresAt"] = iso_time(snapshot.expires_at_ms);
  return object;
}

json::object process_json(const ProcessInfo& process) {
  json::object object{{"pid", process.pid},
                      {"command", to_valid_utf8(process.label)},
                      {"cwd", to_valid_utf8(process.cwd)},
                      {"user", to_valid_utf8(process.user)},
                      {"running", process.running},
                      {"pty", process.pty},
                      {"exitCode", process.exit_code},
                      {"exitSignal", process.exit_signal},
                      {"timedOut", process.timed_out},
                      {"startedAt", iso_time(static_cast<int64_t>(process.started_at_ms))},
                      {"cpuMicroseconds", process.cpu_us},
                      {"stdoutBytes", process.stdout_bytes},
                      {"stderrBytes", process.stderr_bytes}};
  if (process.ended_at_ms != 0) {
    object["exitedAt"] = iso_time(static_cast<int64_t>(process.ended_at_ms));
  }
  return object;
}

json::object entry_json(const FileEntry& entry) {
  json::object object{{"name", to_valid_utf8(entry.name)},
                      {"path", to_valid_utf8(entry.path)},
                      {"size", entry.size},
                      {"isDir", entry.kind == FileKind::Directory},
                      {"isFile", entry.kind == FileKind::File},
                      {"isSymlink", entry.kind == FileKind::Symlink},
                      {"permissions", fmt::format("{:04o}", entry.mode)},
                      {"owner", to_valid_utf8(entry.owner)},
                      {"group", to_valid_utf8(entry.group)},
                      {"uid", entry.uid},
                      {"gid", entry.gid},
                      {"modTime", iso_time(entry.modified_ms)},
                      {"accessTime", iso_time(entry.accessed_ms)}};
  if (entry.kind == FileKind::Symlink) object["linkTarget"] = to_valid_utf8(entry.link_target);
  // A name that is not UTF-8 is shown with replacements; this form is exact and can be sent back.
  if (!is_valid_utf8(entry.path)) {
    std::string exact;
    for (unsigned char c : entry.path) exact += fmt::format("%{:02X}", c);
    object["encodedPath"] = exact;
  }
  return object;
}

}  // namespace atl::api
