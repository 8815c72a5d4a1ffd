#include "backup/manifest.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace atl::backup {
namespace {

namespace json = boost::json;

constexpr std::string_view kProduct = "atoll";
constexpr int64_t kFormat = 1;

std::string text(const json::object& object, const char* key) {
  return std::string(object.at(key).as_string());
}

File decode_file(const json::object& object) {
  return {.path = text(object, "path"),
          .bytes = object.at("bytes").to_number<uint64_t>(),
          .sha256 = text(object, "sha256"),
          .mode = object.at("mode").to_number<uint32_t>() & 0777,
          .owner = text(object, "owner") == "root" ? Owner::Root : Owner::Server};
}

}  // namespace

std::string encode_manifest(const Manifest& manifest) {
  json::array files;
  for (const File& file : manifest.files) {
    files.push_back(json::object{{"path", file.path},
                                 {"bytes", file.bytes},
                                 {"sha256", file.sha256},
                                 {"mode", file.mode},
                                 {"owner", file.owner == Owner::Root ? "root" : "server"}});
  }
  return json::serialize(json::object{{"product", kProduct},
                                      {"format", kFormat},
                                      {"version", manifest.version},
                                      {"schema", manifest.schema},
                                      {"createdAt", manifest.created_at},
                                      {"sandboxes", manifest.sandboxes},
                                      {"files", std::move(files)}});
}

Result<Manifest> decode_manifest(std::string_view bytes) {
  // The library's accessors throw for whatever is missing or of another type.
  try {
    json::value parsed = json::parse(json::string_view(bytes.data(), bytes.size()));
    const json::object& object = parsed.as_object();
    if (text(object, "product") != kProduct)
      return fail(ErrorCode::InvalidArgument, "its manifest is another program's");
    if (object.at("format").to_number<int64_t>() != kFormat)
      return fail(ErrorCode::NotSupported, "its format is a newer Atoll's; restore it with that");
    Manifest manifest;
    manifest.version = text(object, "version");
    manifest.schema = object.at("schema").to_number<int64_t>();
    manifest.created_at = text(object, "createdAt");
    manifest.sandboxes = object.at("sandboxes").to_number<uint64_t>();
    for (const json::value& file : object.at("files").as_array()) {
      manifest.files.push_back(decode_file(file.as_object()));
    }
    return manifest;
  } catch (const std::exception& error) {
    return fail(ErrorCode::InvalidArgument,
                std::string("its manifest is damaged: ") + error.what());
  }
}

bool is_state_file(std::string_view path) {
  if (path == kApiKeyName) return true;
  bool ours = path.starts_with("state/") || path.starts_with("audit/");
  bool plain = std::all_of(path.begin(), path.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (!ours || path.size() > 1024 || !plain) return false;
  if (path.starts_with(kDatabaseName) && path != kDatabaseName) return false;  // -wal, -shm
  for (size_t begin = 0; begin <= path.size();) {
    size_t end = std::min(path.find('/', begin), path.size());
    // Empty, "." and ".."; other hidden ones are somebody's half-written files.
    if (end == begin || path[begin] == '.') return false;
    begin = end + 1;
  }
  return true;
}

std::string timestamp_now() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm utc{};
  gmtime_r(&now.tv_sec, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

}  // namespace atl::backup
