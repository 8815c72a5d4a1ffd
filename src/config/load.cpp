#include "config/load.h"

#include <errno.h>
#include <stdlib.h>

#include <filesystem>

#include "config/toml_file.h"

namespace atl::config {
namespace {

bool fits(Kind kind, const FileValue& value) {
  using Type = FileValue::Type;
  switch (kind) {
    case Kind::Count:
      return value.type == Type::Integer;
    case Kind::Switch:
      return value.type == Type::Boolean;
    case Kind::Cores:
      return value.type == Type::Integer || value.type == Type::Decimal;
    case Kind::Size:
    case Kind::Duration:
      return value.type == Type::Text || (value.type == Type::Integer && value.text == "0");
    default:
      return value.type == Type::Text;
  }
}

std::string_view wanted(Kind kind) {
  switch (kind) {
    case Kind::Count:
      return "wants a whole number";
    case Kind::Switch:
      return "wants true or false, without quotes";
    case Kind::Cores:
      return "wants a number, such as 0.5";
    case Kind::Size:
      return "wants a size in quotes, such as \"512m\", or 0";
    case Kind::Duration:
      return "wants a time in quotes, such as \"1h30m\", or 0";
    default:
      return "wants a text in quotes";
  }
}

bool is_path(Kind kind) { return kind == Kind::Path || kind == Kind::File; }

class Loader {
 public:
  Loader() {
    for (const Setting& setting : all_settings()) {
      values_[&setting] = {
          .setting = &setting, .text = std::string(setting.fallback), .origin = {}};
    }
  }

  void take_file(const std::string& path, const std::string& text) {
    auto parsed = parse_toml(text, path);
    if (!parsed) return problem(parsed.error().message());
    for (const FileValue& value : *parsed) {
      std::string origin = path + ":" + std::to_string(value.line);
      const Setting* setting = find_setting(value.key);
      if (setting == nullptr)
        problem(origin + ": there is no setting '" + value.key + "'");
      else if (!fits(setting->kind, value))
        problem(origin + ": " + value.key + " " + std::string(wanted(setting->kind)));
      else
        take(*setting, value.text, Source::File, origin);
    }
  }

  void take_environment(const std::function<const char*(const char*)>& environment) {
    for (const Setting& setting : all_settings()) {
      std::string name = environment_of(setting);
      const char* text = environment(name.c_str());
      if (text != nullptr && *text != '\0') take(setting, text, Source::Environment, name);
    }
  }

  void take_flags(const std::map<std::string, std::string>& flags) {
    for (const auto& [key, text] : flags) {
      if (const Setting* setting = find_setting(key))
        take(*setting, text, Source::Flag, flag_of(*setting));
    }
  }

  void problem(std::string text) { problems_.push_back(std::move(text)); }
  const std::vector<std::string>& problems() const { return problems_; }

  // What each value by itself cannot say.
  void check_together() {
    Config config = result().config;
    if (config.tls.certificate.empty() != config.tls.key.empty()) {
      bool has_key = config.tls.certificate.empty();
      const Setting* given = find_setting(has_key ? "tls.key" : "tls.certificate");
      problem(values_.at(given).origin + ": tls.certificate and tls.key need each other");
    }
  }

  Loaded result() const {
    Loaded loaded;
    for (const Setting& setting : all_settings()) {
      const Value& value = values_.at(&setting);
      (void)assign(setting, value.text, loaded.config);  // checked when it was taken
      loaded.values.push_back(value);
    }
    return loaded;
  }

 private:
  void take(const Setting& setting, std::string text, Source source, std::string origin) {
    auto good = check(setting, text);
    // The server may be started in any directory; a flag is typed in one that its author sees.
    bool relative = is_path(setting.kind) && !text.empty() && text[0] != '/';
    if (good && relative && source != Source::Flag)
      good = fail(ErrorCode::InvalidArgument, "'" + text + "' is not an absolute path");
    if (!good) {
      bool named = source == Source::File;  // the others' origins name it
      return problem(origin + ": " + (named ? std::string(setting.key) + ": " : "") +
                     good.error().message());
    }
    if (relative) {  // the launcher and the server work in other directories
      std::error_code error;
      auto whole = std::filesystem::absolute(text, error);
      if (error) return problem(origin + ": " + error.message());
      text = whole.lexically_normal().string();
    }
    values_[&setting] = {.setting = &setting,
                         .text = std::move(text),
                         .source = source,
                         .origin = std::move(origin)};
  }

  std::map<const Setting*, Value> values_;
  std::vector<std::string> problems_;
};

Result<Loaded> finish(Loader& loader) {
  if (loader.problems().empty()) loader.check_together();
  if (!loader.problems().empty()) {
    return fail(ErrorCode::InvalidArgument, loader.problems().front());
  }
  return loader.result();
}

}  // namespace

std::string_view to_string(Source source) {
  switch (source) {
    case Source::Default:
      return "default";
    case Source::File:
      return "file";
    case Source::Environment:
      return "environment";
    case Source::Flag:
      return "flag";
  }
  return "default";
}

Result<Loaded> load(const Inputs& inputs) {
  Loader loader;
  std::string path = inputs.file.empty() ? kDefaultFile : inputs.file;
  auto text = read_config_file(path);
  if (text)
    loader.take_file(path, *text);
  else if (!inputs.file.empty() || text.error().sys_errno() != ENOENT)
    return fail(std::move(text).error());
  if (inputs.environment) loader.take_environment(inputs.environment);
  loader.take_flags(inputs.flags);
  return finish(loader);
}

Result<Loaded> load_from_environment(Inputs inputs) {
  inputs.environment = [](const char* name) { return static_cast<const char*>(getenv(name)); };
  return load(inputs);
}

std::vector<std::string> problems_of_file(const std::string& path) {
  Loader loader;
  auto text = read_config_file(path);
  if (!text) return {text.error().message()};
  loader.take_file(path, *text);
  if (loader.problems().empty()) loader.check_together();
  return loader.problems();
}

Config default_config() {
  Loader loader;
  return loader.result().config;
}

}  // namespace atl::config
