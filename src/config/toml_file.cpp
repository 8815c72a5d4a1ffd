// The one file that knows the TOML library.
#include "config/toml_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <fmt/format.h>
#include <toml++/toml.h>

#include "base/unique_fd.h"

namespace atl::config {
namespace {

constexpr size_t kMaxBytes = 1 << 20;

FileValue scalar(const toml::node& node) {
  FileValue value;
  if (const auto* text = node.as_string()) {
    value.type = FileValue::Type::Text;
    value.text = text->get();
  } else if (const auto* integer = node.as_integer()) {
    value.type = FileValue::Type::Integer;
    value.text = std::to_string(integer->get());
  } else if (const auto* decimal = node.as_floating_point()) {
    value.type = FileValue::Type::Decimal;
    value.text = fmt::format("{}", decimal->get());
  } else if (const auto* boolean = node.as_boolean()) {
    value.type = FileValue::Type::Boolean;
    value.text = boolean->get() ? "true" : "false";
  }
  return value;
}

// An empty table counts as a value of its own, so that it is looked at too.
void flatten(const toml::table& table, const std::string& prefix, std::vector<FileValue>& values) {
  for (const auto& [name, node] : table) {
    std::string key = prefix + std::string(name.str());
    const toml::table* below = node.as_table();
    if (below != nullptr && !below->empty()) {
      flatten(*below, key + ".", values);
      continue;
    }
    FileValue value = scalar(node);
    value.key = std::move(key);
    value.line = static_cast<int>(name.source().begin.line);
    values.push_back(std::move(value));
  }
}

}  // namespace

Result<std::string> read_config_file(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("open", path);
  std::string text;
  char buffer[16384];
  for (;;) {
    ssize_t size = read(fd.get(), buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail_errno("read", path);
    if (size == 0) return text;
    text.append(buffer, static_cast<size_t>(size));
    if (text.size() > kMaxBytes) return fail(ErrorCode::TooLarge, path + " is over 1 MiB");
  }
}

Result<std::vector<FileValue>> parse_toml(std::string_view text, const std::string& path) {
  toml::parse_result parsed = toml::parse(text, std::string_view(path));
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return fail(ErrorCode::InvalidArgument,
                fmt::format("{}:{}: {}", path, error.source().begin.line, error.description()));
  }
  std::vector<FileValue> values;
  flatten(parsed.table(), "", values);
  std::stable_sort(values.begin(), values.end(),
                   [](const FileValue& a, const FileValue& b) { return a.line < b.line; });
  return values;
}

}  // namespace atl::config
