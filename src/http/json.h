// Strict decoding of JSON requests: every field is asked for by name and type, and what nobody
// asked for is refused.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace atl::http {

// Each takes many times the bytes of its text, and time of the thread that serves everybody.
inline constexpr size_t kMaxJsonValues = 200'000;

// Owns a parsed document. Nesting deeper than 32, too many values, doubled keys, bytes after the
// value and ill-formed UTF-8 are refused with InvalidArgument, more than `max_bytes` with TooLarge.
class JsonDocument {
 public:
  static Result<JsonDocument> parse(std::string_view text, size_t max_bytes = 1024 * 1024);
  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;
  ~JsonDocument();

  const boost::json::value& value() const { return *value_; }
  // Fails unless the document is an object.
  Result<const boost::json::object*> object() const;

 private:
  explicit JsonDocument(std::unique_ptr<boost::json::value> value);
  std::unique_ptr<boost::json::value> value_;
};

// Takes the fields out of one object. An optional field that is null counts as absent. Failures are
// InvalidArgument with the field's full name ("network.allow[2]"). The object must outlive it.
class JsonObjectReader {
 public:
  explicit JsonObjectReader(const boost::json::object& object, std::string prefix = "");

  bool has(std::string_view name) const;

  Result<std::string> require_string(std::string_view name);
  Result<std::optional<std::string>> optional_string(std::string_view name);
  Result<bool> require_bool(std::string_view name);
  Result<std::optional<bool>> optional_bool(std::string_view name);
  Result<int64_t> require_integer(std::string_view name, int64_t min, int64_t max);
  Result<std::optional<int64_t>> optional_integer(std::string_view name, int64_t min, int64_t max);
  Result<double> require_number(std::string_view name);
  Result<std::optional<double>> optional_number(std::string_view name);
  // Absent collections come back empty.
  Result<std::map<std::string, std::string>> string_map(std::string_view name);
  Result<std::vector<std::string>> string_array(std::string_view name);
  Result<JsonObjectReader> require_object(std::string_view name);
  Result<std::optional<JsonObjectReader>> optional_object(std::string_view name);
  Result<std::vector<JsonObjectReader>> object_array(std::string_view name);
  // Anything at all, for fields that are stored as they came; null when absent.
  const boost::json::value* any(std::string_view name);

  // Refuses the first field that was never asked for.
  Result<void> finish() const;

 private:
  const boost::json::value* take(std::string_view name);
  std::string full_name(std::string_view name) const;
  tl::unexpected<Error> wrong(std::string_view name, std::string_view expected) const;
  template <class T>
  Result<T> required(std::string_view name, Result<std::optional<T>> found) const;

  const boost::json::object* object_;
  std::string prefix_;
  std::vector<std::string> taken_;
};

}  // namespace atl::http
