// JSON of what the client has decoded, in the server's own field names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "atoll/client.h"

namespace atl::cli {

// Builds one object: JsonObject().text("name", n).number("size", s).take().
class JsonObject {
 public:
  JsonObject& text(std::string_view key, std::string_view value);
  JsonObject& number(std::string_view key, int64_t value);
  JsonObject& flag(std::string_view key, bool value);
  JsonObject& raw(std::string_view key, std::string_view json);
  std::string take() { return "{" + std::move(out_) + "}"; }

 private:
  void key(std::string_view name);
  std::string out_;
};

std::string to_json(const ProcessInfo& process);
std::string to_json(const FileEntry& entry);
std::string to_json(const FileEvent& event);
std::string to_json(const SearchMatch& match);
std::string to_json(const TemplateInfo& info);
std::string to_json(const std::vector<std::string>& texts);

template <class T>
std::string to_json_array(const std::vector<T>& items) {
  std::string out = "[";
  for (const T& item : items) {
    if (out.size() > 1) out.push_back(',');
    out += to_json(item);
  }
  return out + "]";
}

// Of things that keep the server's own JSON.
template <class T>
std::string join_json(const std::vector<T>& items) {
  std::string out = "[";
  for (const T& item : items) {
    if (out.size() > 1) out.push_back(',');
    out += item.json;
  }
  return out + "]";
}

// "2026-11-15T05:04:41.123Z"; empty for 0.
std::string iso_time(int64_t milliseconds);
int64_t now_ms();

}  // namespace atl::cli
