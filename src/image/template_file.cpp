#include "image/template_file.h"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/random_id.h"

namespace atl::image {
namespace {

namespace json = boost::json;

json::array list_json(const std::vector<std::string>& items) {
  return json::array(items.begin(), items.end());
}

json::object defaults_json(const TemplateDefaults& defaults) {
  json::object object;
  json::object env;
  for (const auto& [name, value] : defaults.env) env[name] = value;
  if (!env.empty()) object["env"] = std::move(env);
  if (!defaults.workdir.empty()) object["workdir"] = defaults.workdir;
  if (!defaults.user.empty()) object["user"] = defaults.user;
  if (!defaults.network.empty()) object["network"] = defaults.network;
  json::object limits;
  if (defaults.limits.cpu_millis != 0) limits["cpuMillis"] = defaults.limits.cpu_millis;
  if (defaults.limits.memory_bytes != 0) limits["memoryBytes"] = defaults.limits.memory_bytes;
  if (defaults.limits.disk_bytes != 0) limits["diskBytes"] = defaults.limits.disk_bytes;
  if (defaults.limits.pids != 0) limits["pids"] = defaults.limits.pids;
  if (!limits.empty()) object["resources"] = std::move(limits);
  if (!defaults.entrypoint.empty()) object["entrypoint"] = list_json(defaults.entrypoint);
  if (!defaults.cmd.empty()) object["cmd"] = list_json(defaults.cmd);
  return object;
}

void put_version(json::object& object, const Template& version) {
  object["version"] = version.version;
  object["layers"] = list_json(version.layers);
  object["createdAt"] = version.created_at;
  object["digest"] = version.digest;
  object["bytes"] = version.bytes;
  if (!version.source.empty()) object["source"] = version.source;
  json::object defaults = defaults_json(version.defaults);
  if (!defaults.empty()) object["defaults"] = std::move(defaults);
}

tl::unexpected<Error> broken(std::string_view key) {
  return fail(ErrorCode::Internal, fmt::format("'{}' is missing or of the wrong kind", key));
}

Result<std::string> text_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_string()) return broken(key);
  return std::string(value->get_string());
}

Result<std::string> optional_text(const json::object& object, std::string_view key) {
  if (!object.contains(key)) return std::string();
  return text_at(object, key);
}

Result<uint64_t> number_at(const json::object& object, std::string_view key, uint64_t fallback) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr) return fallback;
  boost::system::error_code error;
  auto number = value->to_number<uint64_t>(error);
  if (error) return broken(key);
  return number;
}

Result<std::vector<std::string>> texts_at(const json::object& object, std::string_view key) {
  std::vector<std::string> texts;
  const json::value* value = object.if_contains(key);
  if (value == nullptr) return texts;
  if (!value->is_array()) return broken(key);
  for (const json::value& item : value->get_array()) {
    if (!item.is_string()) return broken(key);
    texts.emplace_back(item.get_string());
  }
  return texts;
}

Result<std::vector<std::string>> layers_at(const json::object& object) {
  ATOLL_ASSIGN(std::vector<std::string> layers, texts_at(object, "layers"));
  if (layers.empty()) return broken("layers");
  for (const std::string& layer : layers) {
    // Layer ids become path components of a privileged process.
    if (!is_valid_id(layer)) {
      return fail(ErrorCode::Internal, "'layers' holds something that is not a layer id");
    }
  }
  return layers;
}

Result<Limits> limits_at(const json::object& object) {
  Limits limits;
  const json::value* value = object.if_contains("resources");
  if (value == nullptr) return limits;
  if (!value->is_object()) return broken("resources");
  const json::object& given = value->get_object();
  ATOLL_ASSIGN(uint64_t cpu, number_at(given, "cpuMillis", 0));
  ATOLL_ASSIGN(limits.memory_bytes, number_at(given, "memoryBytes", 0));
  ATOLL_ASSIGN(limits.disk_bytes, number_at(given, "diskBytes", 0));
  ATOLL_ASSIGN(uint64_t pids, number_at(given, "pids", 0));
  limits.cpu_millis = static_cast<uint32_t>(cpu);
  limits.pids = static_cast<uint32_t>(pids);
  return limits;
}

Result<TemplateDefaults> defaults_at(const json::object& object) {
  TemplateDefaults defaults;
  const json::value* value = object.if_contains("defaults");
  if (value == nullptr) return defaults;
  if (!value->is_object()) return broken("defaults");
  const json::object& given = value->get_object();
  if (const json::value* env = given.if_contains("env")) {
    if (!env->is_object()) return broken("env");
    for (const auto& [name, text] : env->get_object()) {
      if (!text.is_string()) return broken("env");
      defaults.env[std::string(name)] = std::string(text.get_string());
    }
  }
  ATOLL_ASSIGN(defaults.workdir, optional_text(given, "workdir"));
  ATOLL_ASSIGN(defaults.user, optional_text(given, "user"));
  ATOLL_ASSIGN(defaults.network, optional_text(given, "network"));
  ATOLL_ASSIGN(defaults.limits, limits_at(given));
  ATOLL_ASSIGN(defaults.entrypoint, texts_at(given, "entrypoint"));
  ATOLL_ASSIGN(defaults.cmd, texts_at(given, "cmd"));
  return defaults;
}

Result<json::object> parse_object(std::string_view text) {
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error || !value.is_object())
    return fail(ErrorCode::InvalidArgument, "this is no JSON object");
  return std::move(value.get_object());
}

Result<Template> version_at(const json::object& object, const std::string& name) {
  Template version;
  version.name = name;
  ATOLL_ASSIGN(uint64_t number, number_at(object, "version", 1));
  version.version = static_cast<uint32_t>(number);
  ATOLL_ASSIGN(version.layers, layers_at(object));
  ATOLL_ASSIGN(version.created_at, text_at(object, "createdAt"));
  ATOLL_ASSIGN(version.digest, text_at(object, "digest"));
  ATOLL_ASSIGN(version.bytes, number_at(object, "bytes", 0));
  ATOLL_ASSIGN(version.source, optional_text(object, "source"));
  ATOLL_ASSIGN(version.defaults, defaults_at(object));
  return version;
}

Result<void> read_older(const json::object& object, TemplateFile& file) {
  const json::value* older = object.if_contains("older");
  if (older == nullptr) return {};
  if (!older->is_array()) return broken("older");
  for (const json::value& item : older->get_array()) {
    if (!item.is_object()) return broken("older");
    ATOLL_ASSIGN(Template version, version_at(item.get_object(), file.name));
    file.versions.push_back(std::move(version));
  }
  return {};
}

Result<void> read_tags(const json::object& object, TemplateFile& file) {
  const json::value* tags = object.if_contains("tags");
  if (tags == nullptr) return {};
  if (!tags->is_object()) return broken("tags");
  for (const auto& [tag, number] : tags->get_object()) {
    boost::system::error_code error;
    auto version = number.to_number<uint32_t>(error);
    if (error) return broken("tags");
    file.tags[std::string(tag)] = version;
    for (Template& tagged : file.versions) {
      if (tagged.version == version) tagged.tags.emplace_back(tag);
    }
  }
  return {};
}

}  // namespace

const Template* TemplateFile::version(uint32_t number) const {
  for (const Template& candidate : versions) {
    if (candidate.version == number) return &candidate;
  }
  return nullptr;
}

// The newest stands at the top, as in files from before there were versions.
std::string encode_defaults(const TemplateDefaults& defaults) {
  return json::serialize(json::object{{"defaults", defaults_json(defaults)}});
}

Result<TemplateDefaults> decode_defaults(std::string_view text) {
  ATOLL_ASSIGN(json::object object, parse_object(text));
  return defaults_at(object);
}

std::string encode_template_file(const TemplateFile& file) {
  json::object object{{"name", file.name}};
  put_version(object, file.versions.back());
  json::array older;
  for (size_t i = 0; i + 1 < file.versions.size(); i++) {
    json::object item;
    put_version(item, file.versions[i]);
    older.push_back(std::move(item));
  }
  if (!older.empty()) object["older"] = std::move(older);
  json::object tags;
  for (const auto& [tag, version] : file.tags) tags[tag] = version;
  if (!tags.empty()) object["tags"] = std::move(tags);
  return json::serialize(object) + "\n";
}

Result<TemplateFile> parse_template_file(std::string_view text) {
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error || !value.is_object()) return fail(ErrorCode::Internal, "not a JSON object");
  const json::object& object = value.get_object();
  TemplateFile file;
  ATOLL_ASSIGN(file.name, text_at(object, "name"));
  ATOLL_TRY(read_older(object, file));
  ATOLL_ASSIGN(Template newest, version_at(object, file.name));
  file.versions.push_back(std::move(newest));
  ATOLL_TRY(read_tags(object, file));
  return file;
}

}  // namespace atl::image
