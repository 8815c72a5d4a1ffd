// Request targets: strict percent-decoding, the path and the query parameters.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace atl::http {

// Refuses a '%' without two hex digits and an encoded or plain NUL.
Result<std::string> percent_decode(std::string_view text);
// Leaves only unreserved characters; fit for one path segment or one query value.
std::string percent_encode(std::string_view text);
// As above, but keeps '/': for a path that goes into a tail wildcard.
std::string percent_encode_path(std::string_view path);

// Decoded query parameters in order; a name may repeat.
class Query {
 public:
  using Entry = std::pair<std::string, std::string>;

  // '+' reads as a space, as in forms.
  static Result<Query> parse(std::string_view text);

  void add(std::string name, std::string value);
  // The first value.
  std::optional<std::string_view> get(std::string_view name) const;
  // Fails with InvalidArgument naming the parameter when it is absent or empty.
  Result<std::string> require(std::string_view name) const;
  std::vector<std::string_view> all(std::string_view name) const;
  // "1", "true" or a bare name is true; "0", "false" or absence is false; anything else fails.
  Result<bool> flag(std::string_view name) const;

  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }

 private:
  std::vector<Entry> entries_;
};

// The two halves of "/path?query", still encoded; an absolute-form target loses its authority.
struct SplitTarget {
  std::string_view path;
  std::string_view query;
};
Result<SplitTarget> split_target(std::string_view target);

}  // namespace atl::http
