#include "http/target.h"

#include <algorithm>

namespace atl::http {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_unreserved(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

Result<std::string> decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); i++) {
    char c = text[i];
    if (c == '%') {
      int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return fail(ErrorCode::InvalidArgument, "malformed % in the target");
      c = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (c == '+' && plus_is_space) {
      c = ' ';
    }
    // Every consumer ends up in a C string: a NUL would cut a checked name short.
    if (c == '\0') return fail(ErrorCode::InvalidArgument, "NUL in the target");
    out.push_back(c);
  }
  return out;
}

std::string encode(std::string_view text, bool keep_slash) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    if (is_unreserved(c) || (keep_slash && c == '/')) {
      out.push_back(c);
      continue;
    }
    auto byte = static_cast<unsigned char>(c);
    out.push_back('%');
    out.push_back(kHex[byte >> 4]);
    out.push_back(kHex[byte & 15]);
  }
  return out;
}

}  // namespace

Result<std::string> percent_decode(std::string_view text) { return decode(text, false); }
std::string percent_encode(std::string_view text) { return encode(text, false); }
std::string percent_encode_path(std::string_view path) { return encode(path, true); }

Result<Query> Query::parse(std::string_view text) {
  Query query;
  while (!text.empty()) {
    size_t end = std::min(text.find('&'), text.size());
    std::string_view pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pair.empty()) continue;
    size_t equals = std::min(pair.find('='), pair.size());
    ATOLL_ASSIGN(std::string name, decode(pair.substr(0, equals), true));
    ATOLL_ASSIGN(std::string value, decode(pair.substr(std::min(equals + 1, pair.size())), true));
    query.add(std::move(name), std::move(value));
  }
  return query;
}

void Query::add(std::string name, std::string value) {
  entries_.emplace_back(std::move(name), std::move(value));
}

std::optional<std::string_view> Query::get(std::string_view name) const {
  for (const Entry& entry : entries_) {
    if (entry.first == name) return entry.second;
  }
  return std::nullopt;
}

Result<std::string> Query::require(std::string_view name) const {
  auto value = get(name);
  if (!value || value->empty()) {
    return fail(
        Error(ErrorCode::InvalidArgument, "query parameter '" + std::string(name) + "' is required")
            .with_field(name));
  }
  return std::string(*value);
}

std::vector<std::string_view> Query::all(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const Entry& entry : entries_) {
    if (entry.first == name) values.push_back(entry.second);
  }
  return values;
}

Result<bool> Query::flag(std::string_view name) const {
  auto value = get(name);
  if (!value || *value == "0" || *value == "false") return false;
  if (value->empty() || *value == "1" || *value == "true") return true;
  return fail(Error(ErrorCode::InvalidArgument,
                    "query parameter '" + std::string(name) + "' must be true or false")
                  .with_field(name));
}

Result<SplitTarget> split_target(std::string_view target) {
  // A fragment never travels (RFC 9112 3.2); some parsers cut there and some do not.
  if (target.find('#') != std::string_view::npos) {
    return fail(ErrorCode::InvalidArgument, "fragment in the target");
  }
  for (std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    size_t path = target.find_first_of("/?", scheme.size());
    target = path == std::string_view::npos ? "/" : target.substr(path);
    break;
  }
  if (target.starts_with('?')) return SplitTarget{"/", target.substr(1)};
  if (!target.starts_with('/')) return fail(ErrorCode::InvalidArgument, "target is not a path");
  size_t question = std::min(target.find('?'), target.size());
  return SplitTarget{target.substr(0, question),
                     target.substr(std::min(question + 1, target.size()))};
}

}  // namespace atl::http
