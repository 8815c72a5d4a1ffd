#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace atl::http {

struct Field {
  std::string name;
  std::string value;
};

// Header fields in the order they came. Names compare without case; messages carry about ten
// fields, where a linear search beats any map.
class Headers {
 public:
  Headers() = default;
  Headers(std::initializer_list<Field> fields) : fields_(fields) {}

  void add(std::string name, std::string value);
  // Replaces every field of that name.
  void set(std::string name, std::string value);
  void remove(std::string_view name);

  // The first value.
  std::optional<std::string_view> get(std::string_view name) const;
  size_t count(std::string_view name) const;
  bool contains(std::string_view name) const { return count(name) > 0; }
  // Is `token` among the comma-separated values of any field of that name?
  bool has_token(std::string_view name, std::string_view token) const;

  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }
  size_t size() const { return fields_.size(); }
  bool empty() const { return fields_.empty(); }
  void clear() { fields_.clear(); }
  void reserve(size_t count) { fields_.reserve(count); }

 private:
  std::vector<Field> fields_;
};

// ASCII only, as field names and tokens are.
bool equals_ignoring_case(std::string_view a, std::string_view b);
std::string_view trim(std::string_view text);
// Calls for each element of a comma-separated list, trimmed, empty ones left out.
std::vector<std::string_view> split_list(std::string_view list);

// RFC 9110 5.6.2 token; 5.5 field value without control characters.
bool is_token(std::string_view text);
bool is_field_value(std::string_view text);

}  // namespace atl::http
