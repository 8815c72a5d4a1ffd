#include "image/template.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <string_view>
#include <utility>

#include "base/random_id.h"
#include "base/unique_fd.h"
#include "image/tree.h"

namespace atl::image {
namespace {

namespace json = boost::json;

constexpr std::string_view kSuffix = ".json";
constexpr size_t kMaxManifestBytes = 64 * 1024;

std::string now_rfc3339() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm utc{};
  gmtime_r(&now.tv_sec, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

Result<void> check_name(const std::string& name) {
  if (is_valid_id(name)) return {};
  return fail(Error(ErrorCode::InvalidArgument,
                    "a template's name is 1 to 64 characters of a-z, 0-9 and '-', not starting "
                    "with '-'")
                  .with_field("template"));
}

Error missing(const std::string& name) {
  return Error(ErrorCode::TemplateMissing,
               fmt::format("there is no template '{0}'; make one with 'atoll template import "
                           "ROOTFS.tar.zst --name {0}' ('./dev setup' makes 'base')",
                           name))
      .with_field("template");
}

Result<std::string> read_small_file(int fd, const std::string& name) {
  std::string content;
  std::array<char, 4096> buffer;
  for (;;) {
    ssize_t size = read(fd, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail_errno("read", name);
    if (size == 0) return content;
    content.append(buffer.data(), static_cast<size_t>(size));
    if (content.size() > kMaxManifestBytes) {
      return fail(ErrorCode::Internal, name + " is too large for a template's manifest");
    }
  }
}

Result<std::string> string_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_string()) {
    return fail(ErrorCode::Internal, fmt::format("'{}' is missing or not a string", key));
  }
  return std::string(value->get_string().c_str(), value->get_string().size());
}

Result<std::vector<std::string>> layers_at(const json::object& object) {
  const json::value* value = object.if_contains("layers");
  if (value == nullptr || !value->is_array() || value->get_array().empty()) {
    return fail(ErrorCode::Internal, "'layers' is missing or empty");
  }
  std::vector<std::string> layers;
  for (const json::value& item : value->get_array()) {
    // Layer ids become path components of a privileged process.
    if (!item.is_string() || !is_valid_id(std::string_view(item.get_string()))) {
      return fail(ErrorCode::Internal, "'layers' holds something that is not a layer id");
    }
    layers.emplace_back(std::string_view(item.get_string()));
  }
  return layers;
}

Result<Template> parse_manifest(const std::string& content) {
  boost::system::error_code error;
  json::value value = json::parse(content, error);
  if (error || !value.is_object()) return fail(ErrorCode::Internal, "not a JSON object");
  const json::object& object = value.get_object();
  Template manifest;
  ATOLL_ASSIGN(manifest.name, string_at(object, "name"));
  ATOLL_ASSIGN(manifest.layers, layers_at(object));
  ATOLL_ASSIGN(manifest.created_at, string_at(object, "createdAt"));
  ATOLL_ASSIGN(manifest.digest, string_at(object, "digest"));
  return manifest;
}

}  // namespace

Result<void> save_template(const std::string& dir, const Template& manifest) {
  ATOLL_TRY(check_name(manifest.name));
  json::array layers(manifest.layers.begin(), manifest.layers.end());
  json::object object{{"name", manifest.name},
                      {"layers", std::move(layers)},
                      {"createdAt", manifest.created_at},
                      {"digest", manifest.digest}};
  ATOLL_ASSIGN(UniqueFd templates, open_or_create_directory(dir));
  // The unprivileged server reads the manifests.
  if (fchmod(templates.get(), 0755) != 0) return fail_errno("fchmod", dir);
  return write_file_durably(templates.get(), manifest.name + std::string(kSuffix),
                            json::serialize(object) + "\n");
}

Result<Template> load_template(const std::string& dir, const std::string& name) {
  ATOLL_TRY(check_name(name));
  std::string path = fmt::format("{}/{}{}", dir, name, kSuffix);
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.valid() && errno == ENOENT) return fail(missing(name));
  if (!file.valid()) return fail_errno("open", path);
  ATOLL_ASSIGN(std::string content, read_small_file(file.get(), path));
  Result<Template> manifest = parse_manifest(content);
  if (!manifest) return fail(std::move(manifest).error().context("reading " + path));
  if (manifest->name != name) {
    return fail(ErrorCode::Internal, fmt::format("{} is about '{}'", path, manifest->name));
  }
  return manifest;
}

Result<std::vector<Template>> list_templates(const std::string& dir) {
  std::vector<Template> templates;
  UniqueFd fd(open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() && errno == ENOENT) return templates;
  if (!fd.valid()) return fail_errno("open", dir);
  ATOLL_ASSIGN(std::vector<std::string> names, list_directory(fd.get()));
  std::sort(names.begin(), names.end());
  for (const std::string& file : names) {
    if (!file.ends_with(kSuffix) || file.front() == '.') continue;
    ATOLL_ASSIGN(Template manifest,
                 load_template(dir, file.substr(0, file.size() - kSuffix.size())));
    templates.push_back(std::move(manifest));
  }
  return templates;
}

Result<TemplateImport> import_template(const std::string& data_dir, const std::string& name,
                                       const std::string& archive_path) {
  ATOLL_TRY(check_name(name));
  TemplateImport result;
  ImportOptions options{.archive_path = archive_path, .layers_dir = data_dir + "/layers"};
  ATOLL_ASSIGN(result.layer, import_rootfs(options));
  std::string templates_dir = data_dir + "/templates";
  if (Result<Template> old = load_template(templates_dir, name);
      old && old->layers == std::vector{result.layer.layer_id}) {
    result.manifest = std::move(*old);
    result.reused = true;
    return result;
  }
  result.manifest = {name, {result.layer.layer_id}, now_rfc3339(), result.layer.digest};
  ATOLL_TRY(save_template(templates_dir, result.manifest));
  return result;
}

}  // namespace atl::image
