#include "http/json.h"

#include <algorithm>
#include <boost/json.hpp>
#include <boost/json/basic_parser_impl.hpp>
#include <limits>

namespace atl::http {
namespace {

namespace json = boost::json;

constexpr size_t kMaxDepth = 32;

// Builds values as json::parser does, and refuses doubled keys, where that one would silently keep
// the last.
class StrictBuilder {
 public:
  static constexpr size_t max_array_size = std::numeric_limits<size_t>::max();
  static constexpr size_t max_object_size = std::numeric_limits<size_t>::max();
  static constexpr size_t max_string_size = std::numeric_limits<size_t>::max();
  static constexpr size_t max_key_size = std::numeric_limits<size_t>::max();

  StrictBuilder() { stack_.reset(); }
  json::value release() { return stack_.release(); }
  const std::string& doubled_key() const { return doubled_; }

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_array_begin(json::error_code& error) { return count(error); }
  bool on_array_end(size_t count, json::error_code&) { return stack_.push_array(count), true; }
  bool on_object_begin(json::error_code& error) {
    keys_.emplace_back();
    return count(error);
  }
  bool on_object_end(size_t count, json::error_code& error) {
    std::vector<std::string>& keys = keys_.back();
    std::sort(keys.begin(), keys.end());
    if (auto twice = std::adjacent_find(keys.begin(), keys.end()); twice != keys.end()) {
      doubled_ = *twice;
      error = json::error::syntax;
      return false;
    }
    keys_.pop_back();
    stack_.push_object(count);
    return true;
  }
  bool on_string_part(json::string_view text, size_t, json::error_code&) {
    return stack_.push_chars(text), true;
  }
  bool on_string(json::string_view text, size_t, json::error_code& error) {
    return stack_.push_string(text), count(error);
  }
  bool on_key_part(json::string_view text, size_t, json::error_code&) {
    key_.append(text.data(), text.size());
    return stack_.push_chars(text), true;
  }
  bool on_key(json::string_view text, size_t, json::error_code&) {
    key_.append(text.data(), text.size());
    keys_.back().push_back(std::exchange(key_, {}));
    return stack_.push_key(text), true;
  }
  bool on_number_part(json::string_view, json::error_code&) { return true; }
  bool on_int64(int64_t number, json::string_view, json::error_code& error) {
    return stack_.push_int64(number), count(error);
  }
  bool on_uint64(uint64_t number, json::string_view, json::error_code& error) {
    return stack_.push_uint64(number), count(error);
  }
  bool on_double(double number, json::string_view, json::error_code& error) {
    return stack_.push_double(number), count(error);
  }
  bool on_bool(bool flag, json::error_code& error) { return stack_.push_bool(flag), count(error); }
  bool on_null(json::error_code& error) { return stack_.push_null(), count(error); }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

 private:
  bool count(json::error_code& error) {
    if (++values_ <= kMaxJsonValues) return true;
    error = json::error::array_too_large;
    return false;
  }

  size_t values_ = 0;
  json::value_stack stack_;
  std::vector<std::vector<std::string>> keys_;
  std::string key_;
  std::string doubled_;
};

}  // namespace

JsonDocument::JsonDocument(std::unique_ptr<json::value> value) : value_(std::move(value)) {}
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;
JsonDocument::~JsonDocument() = default;

Result<JsonDocument> JsonDocument::parse(std::string_view text, size_t max_bytes) {
  if (text.size() > max_bytes) {
    return fail(ErrorCode::TooLarge, "JSON is larger than " + std::to_string(max_bytes) + " bytes");
  }
  json::parse_options options;
  options.max_depth = kMaxDepth;
  json::basic_parser<StrictBuilder> parser(options);
  json::error_code error;
  size_t used = parser.write_some(false, text.data(), text.size(), error);
  if (const std::string& key = parser.handler().doubled_key(); !key.empty()) {
    return fail(
        Error(ErrorCode::InvalidArgument, "field '" + key + "' is given twice").with_field(key));
  }
  if (!error && used != text.size()) error = json::error::extra_data;
  if (error) return fail(ErrorCode::InvalidArgument, "malformed JSON: " + error.message());
  return JsonDocument(std::make_unique<json::value>(parser.handler().release()));
}

Result<const json::object*> JsonDocument::object() const {
  if (!value_->is_object()) {
    return fail(ErrorCode::InvalidArgument, "the request must be a JSON object");
  }
  return &value_->get_object();
}

}  // namespace atl::http
