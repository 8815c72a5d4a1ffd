#include <algorithm>
#include <boost/json.hpp>

#include "http/json.h"

namespace atl::http {
namespace {

namespace json = boost::json;

std::optional<int64_t> integer_of(const json::value& value) {
  if (value.is_int64()) return value.get_int64();
  // Only numbers above int64 come as uint64, so none of those is in range.
  return std::nullopt;
}

}  // namespace

JsonObjectReader::JsonObjectReader(const json::object& object, std::string prefix)
    : object_(&object), prefix_(std::move(prefix)) {}

bool JsonObjectReader::has(std::string_view name) const {
  const json::value* value = object_->if_contains(name);
  return value != nullptr && !value->is_null();
}

const json::value* JsonObjectReader::take(std::string_view name) {
  taken_.emplace_back(name);
  const json::value* value = object_->if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

const json::value* JsonObjectReader::any(std::string_view name) { return take(name); }

std::string JsonObjectReader::full_name(std::string_view name) const {
  return prefix_.empty() ? std::string(name) : prefix_ + "." + std::string(name);
}

tl::unexpected<Error> JsonObjectReader::wrong(std::string_view name,
                                              std::string_view expected) const {
  std::string full = full_name(name);
  std::string message = "field '" + full + "' must be " + std::string(expected);
  return fail(Error(ErrorCode::InvalidArgument, std::move(message)).with_field(full));
}

template <class T>
Result<T> JsonObjectReader::required(std::string_view name, Result<std::optional<T>> found) const {
  if (!found) return tl::unexpected(std::move(found).error());
  if (*found) return std::move(**found);
  std::string full = full_name(name);
  return fail(
      Error(ErrorCode::InvalidArgument, "field '" + full + "' is required").with_field(full));
}

Result<std::optional<std::string>> JsonObjectReader::optional_string(std::string_view name) {
  const json::value* value = take(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) return wrong(name, "a string");
  return std::string(value->get_string());
}

Result<std::optional<bool>> JsonObjectReader::optional_bool(std::string_view name) {
  const json::value* value = take(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_bool()) return wrong(name, "true or false");
  return value->get_bool();
}

Result<std::optional<int64_t>> JsonObjectReader::optional_integer(std::string_view name,
                                                                  int64_t min, int64_t max) {
  const json::value* value = take(name);
  if (value == nullptr) return std::nullopt;
  auto number = integer_of(*value);
  if (!number || *number < min || *number > max) {
    return wrong(name, "an integer from " + std::to_string(min) + " to " + std::to_string(max));
  }
  return *number;
}

Result<std::optional<double>> JsonObjectReader::optional_number(std::string_view name) {
  const json::value* value = take(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) return wrong(name, "a number");
  return value->to_number<double>();
}

Result<std::string> JsonObjectReader::require_string(std::string_view name) {
  return required(name, optional_string(name));
}
Result<bool> JsonObjectReader::require_bool(std::string_view name) {
  return required(name, optional_bool(name));
}
Result<int64_t> JsonObjectReader::require_integer(std::string_view name, int64_t min, int64_t max) {
  return required(name, optional_integer(name, min, max));
}
Result<double> JsonObjectReader::require_number(std::string_view name) {
  return required(name, optional_number(name));
}
Result<JsonObjectReader> JsonObjectReader::require_object(std::string_view name) {
  return required(name, optional_object(name));
}

Result<std::map<std::string, std::string>> JsonObjectReader::string_map(std::string_view name) {
  std::map<std::string, std::string> out;
  const json::value* value = take(name);
  if (value == nullptr) return out;
  if (!value->is_object()) return wrong(name, "an object of strings");
  for (const auto& [key, item] : value->get_object()) {
    if (!item.is_string()) return wrong(std::string(name) + "." + std::string(key), "a string");
    out.emplace(std::string(key), std::string(item.get_string()));
  }
  return out;
}

Result<std::vector<std::string>> JsonObjectReader::string_array(std::string_view name) {
  std::vector<std::string> out;
  const json::value* value = take(name);
  if (value == nullptr) return out;
  if (!value->is_array()) return wrong(name, "an array of strings");
  for (const json::value& item : value->get_array()) {
    if (!item.is_string()) {
      return wrong(std::string(name) + "[" + std::to_string(out.size()) + "]", "a string");
    }
    out.emplace_back(item.get_string());
  }
  return out;
}

Result<std::optional<JsonObjectReader>> JsonObjectReader::optional_object(std::string_view name) {
  const json::value* value = take(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) return wrong(name, "an object");
  return JsonObjectReader(value->get_object(), full_name(name));
}

Result<std::vector<JsonObjectReader>> JsonObjectReader::object_array(std::string_view name) {
  std::vector<JsonObjectReader> out;
  const json::value* value = take(name);
  if (value == nullptr) return out;
  if (!value->is_array()) return wrong(name, "an array of objects");
  for (const json::value& item : value->get_array()) {
    std::string element = std::string(name) + "[" + std::to_string(out.size()) + "]";
    if (!item.is_object()) return wrong(element, "an object");
    out.emplace_back(item.get_object(), full_name(element));
  }
  return out;
}

Result<void> JsonObjectReader::finish() const {
  for (const auto& item : *object_) {
    std::string_view key(item.key().data(), item.key().size());
    if (std::find(taken_.begin(), taken_.end(), key) != taken_.end()) continue;
    std::string full = full_name(key);
    return fail(Error(ErrorCode::InvalidArgument, "unknown field '" + full + "'").with_field(full));
  }
  return {};
}

}  // namespace atl::http
