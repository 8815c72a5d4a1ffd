#include "cli/json_out.h"

#include <fmt/format.h>

#include <chrono>

#include "base/file_change.h"
#include "base/iso_time.h"
#include "base/json_escape.h"

namespace atl::cli {

void JsonObject::key(std::string_view name) {
  if (!out_.empty()) out_.push_back(',');
  append_json_string(out_, name);
  out_.push_back(':');
}

JsonObject& JsonObject::text(std::string_view name, std::string_view value) {
  key(name);
  append_json_string(out_, value);
  return *this;
}

JsonObject& JsonObject::number(std::string_view name, int64_t value) {
  return raw(name, std::to_string(value));
}

JsonObject& JsonObject::flag(std::string_view name, bool value) {
  return raw(name, value ? "true" : "false");
}

JsonObject& JsonObject::raw(std::string_view name, std::string_view json) {
  key(name);
  out_.append(json);
  return *this;
}

std::string to_json(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) {
    if (out.size() > 1) out.push_back(',');
    append_json_string(out, text);
  }
  return out + "]";
}

std::string to_json(const ProcessInfo& process) {
  return JsonObject()
      .number("pid", process.pid)
      .text("command", process.label)
      .text("cwd", process.cwd)
      .text("user", process.user)
      .flag("running", process.running)
      .flag("pty", process.pty)
      .number("exitCode", process.exit_code)
      .number("exitSignal", process.exit_signal)
      .flag("timedOut", process.timed_out)
      .text("startedAt", iso_time(static_cast<int64_t>(process.started_at_ms)))
      .text("exitedAt", iso_time(static_cast<int64_t>(process.ended_at_ms)))
      .number("cpuMicroseconds", static_cast<int64_t>(process.cpu_us))
      .number("stdoutBytes", static_cast<int64_t>(process.stdout_bytes))
      .number("stderrBytes", static_cast<int64_t>(process.stderr_bytes))
      .take();
}

std::string to_json(const FileEntry& entry) {
  return JsonObject()
      .text("name", entry.name)
      .text("path", entry.path)
      .number("size", static_cast<int64_t>(entry.size))
      .flag("isDir", entry.kind == FileKind::Directory)
      .flag("isFile", entry.kind == FileKind::File)
      .flag("isSymlink", entry.kind == FileKind::Symlink)
      .text("linkTarget", entry.link_target)
      .text("permissions", fmt::format("{:04o}", entry.mode))
      .text("owner", entry.owner)
      .text("group", entry.group)
      .number("uid", entry.uid)
      .number("gid", entry.gid)
      .text("modTime", iso_time(entry.modified_ms))
      .text("accessTime", iso_time(entry.accessed_ms))
      .take();
}

std::string to_json(const FileEvent& event) {
  return JsonObject()
      .text("type", to_string(event.change))
      .text("path", event.path)
      .flag("isDir", event.is_dir)
      .take();
}

std::string to_json(const SearchMatch& match) {
  return JsonObject()
      .text("path", match.path)
      .number("line", match.line)
      .number("column", match.column)
      .text("text", match.text)
      .raw("before", to_json(match.before))
      .raw("after", to_json(match.after))
      .take();
}

std::string to_json(const TemplateInfo& info) {
  return JsonObject()
      .text("name", info.name)
      .text("createdAt", info.created_at)
      .text("digest", info.digest)
      .number("version", info.version)
      .number("layers", static_cast<int64_t>(info.layers))
      .number("sizeBytes", static_cast<int64_t>(info.bytes))
      .number("inUse", static_cast<int64_t>(info.in_use))
      .raw("tags", to_json(info.tags))
      .take();
}

std::string iso_time(int64_t milliseconds) {
  return milliseconds <= 0 ? std::string() : atl::iso_time(milliseconds);
}

int64_t now_ms() {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace atl::cli
