#include "api/e2b/shapes.h"

#include <boost/json/array.hpp>

#include "api/e2b/credentials.h"
#include "api/e2b/lifetime.h"
#include "api/preview_url.h"
#include "base/iso_time.h"
#include "base/json_escape.h"

namespace atl::api::e2b {

namespace json = boost::json;

namespace {

// What E2B shows as who made it; nobody reads it.
constexpr std::string_view kClientId = "atoll";

json::object metadata_json(const sandbox::Record& record) {
  json::object metadata;
  for (const auto& [key, value] : record.spec.metadata) metadata[key] = value;
  return metadata;
}

std::string_view type_name(FileKind kind) {
  switch (kind) {
    case FileKind::Directory:
      return "FILE_TYPE_DIRECTORY";
    case FileKind::File:
      return "FILE_TYPE_FILE";
    default:
      return "FILE_TYPE_UNSPECIFIED";
  }
}

// The second is for ports that are not public, and for the code interpreter's.
void add_tokens(const Context& context, const sandbox::Record& record, json::object& object) {
  auto& tokens = context.service.tokens;
  object["envdAccessToken"] = tokens.runtime_token(record.id, record.generation);
  object["trafficAccessToken"] = tokens.traffic_token(record.id, record.generation);
}

}  // namespace

json::object created_json(const Context& context, const sandbox::Record& record) {
  json::object object{{"sandboxID", record.id},
                      {"templateID", record.spec.template_name},
                      {"clientID", kClientId},
                      {"envdVersion", kDaemonVersion},
                      {"alias", record.spec.template_name},
                      {"trafficAccessToken", nullptr},
                      {"domain", preview_authority(context.service.settings)}};
  if (context.who.role != auth::Role::ReadOnly) {
    add_tokens(context, record, object);
  }
  return object;
}

json::object listed_json(const sandbox::Record& record) {
  const Limits& limits = record.spec.limits;
  return {{"sandboxID", record.id},
          {"templateID", record.spec.template_name},
          {"alias", record.spec.template_name},
          {"clientID", kClientId},
          {"startedAt", iso_time(record.started_at_ms)},
          {"endAt", iso_time(end_of(record))},
          {"cpuCount", std::max<uint32_t>(1, (limits.cpu_millis + 999) / 1000)},
          {"memoryMB", limits.memory_bytes >> 20},
          {"diskSizeMB", limits.disk_bytes >> 20},
          {"state", is_paused(record) ? "paused" : "running"},
          {"envdVersion", kDaemonVersion},
          {"metadata", metadata_json(record)}};
}

json::object detail_json(const Context& context, const sandbox::Record& record) {
  json::object object = listed_json(record);
  object["domain"] = preview_authority(context.service.settings);
  bool pauses = record.spec.at_lifetime != sandbox::AtLifetime::Delete;
  object["lifecycle"] = json::object{{"autoResume", pauses && record.spec.auto_resume},
                                     {"onTimeout", pauses ? "pause" : "kill"}};
  if (record.status == sandbox::Status::Paused) object["pauseMode"] = "full";
  if (record.status == sandbox::Status::Stopped) object["pauseMode"] = "filesystem";
  if (context.who.role != auth::Role::ReadOnly) {
    add_tokens(context, record, object);
  }
  return object;
}

json::object snapshot_json(const sandbox::Snapshot& snapshot) {
  json::array names;
  for (const std::string& tag : snapshot.tags) names.emplace_back(tag + ":default");
  return {{"snapshotID", snapshot.id}, {"names", std::move(names)}};
}

std::string permissions_text(const FileEntry& entry) {
  constexpr std::string_view kLetters = "rwxrwxrwx";
  std::string text = entry.kind == FileKind::Directory ? "d"
                     : entry.kind == FileKind::Symlink ? "L"
                                                       : "-";
  for (size_t bit = 0; bit < kLetters.size(); bit++) {
    text += (entry.mode >> (kLetters.size() - 1 - bit) & 1) != 0 ? kLetters[bit] : '-';
  }
  return text;
}

json::object entry_json(const FileEntry& entry) {
  bool link = entry.kind == FileKind::Symlink;
  size_t slash = entry.path.find_last_of('/');
  std::string name = slash == std::string::npos ? entry.path : entry.path.substr(slash + 1);
  json::object object{{"name", to_valid_utf8(name)},
                      {"type", type_name(link ? entry.target_kind : entry.kind)},
                      {"path", to_valid_utf8(entry.path)},
                      {"size", std::to_string(entry.size)},
                      {"mode", entry.mode},
                      {"permissions", permissions_text(entry)},
                      {"owner", to_valid_utf8(entry.owner)},
                      {"group", to_valid_utf8(entry.group)},
                      {"modifiedTime", iso_time(entry.modified_ms)}};
  if (link) {
    object["symlinkTarget"] = to_valid_utf8(entry.link_target);
    object["isSymlink"] = true;
  }
  return object;
}

}  // namespace atl::api::e2b
