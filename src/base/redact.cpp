#include "base/redact.h"

#include <algorithm>
#include <array>

namespace atl {
namespace {

constexpr std::array<std::string_view, 15> kSecretWords = {
    "authorization", "token",      "tokens",  "key",      "keys",
    "apikey",        "secret",     "secrets", "password", "passwd",
    "passwords",     "passphrase", "cookie",  "cookies",  "credential"};

// Shorter ones are words of prose, such as "sk-learn".
constexpr size_t kShortestKey = 8;
constexpr size_t kShortestWebToken = 16;

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_alnum(char c) { return is_lower(c) || is_upper(c) || (c >= '0' && c <= '9'); }
bool is_key_char(char c) { return is_alnum(c) || c == '-' || c == '_'; }
bool is_token_char(char c) {
  return is_key_char(c) || c == '.' || c == '=' || c == '+' || c == '/' || c == '~';
}
char to_lower(char c) { return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_secret_word(const std::string& word) {
  return std::find(kSecretWords.begin(), kSecretWords.end(), word) != kSecretWords.end();
}

bool starts_with_ignoring_case(std::string_view text, std::string_view lower) {
  if (text.size() < lower.size()) return false;
  return std::equal(lower.begin(), lower.end(), text.begin(),
                    [](char a, char b) { return a == to_lower(b); });
}

template <class Predicate>
size_t run_length(std::string_view text, Predicate predicate) {
  return static_cast<size_t>(std::find_if_not(text.begin(), text.end(), predicate) - text.begin());
}

// A part of the text at its beginning: what to keep, then what to hide.
struct Find {
  size_t keep = 0;
  size_t hide = 0;
};

Find find_key(std::string_view text) {
  if (!text.starts_with("sk-") && !text.starts_with("rt-")) return {};
  size_t length = run_length(text, is_key_char);
  return length >= 3 + kShortestKey ? Find{0, length} : Find{};
}

Find find_web_token(std::string_view text) {
  if (!text.starts_with("eyJ")) return {};
  size_t length = run_length(text, is_token_char);
  return length >= kShortestWebToken ? Find{0, length} : Find{};
}

Find find_bearer(std::string_view text) {
  constexpr std::string_view kScheme = "bearer ";
  if (!starts_with_ignoring_case(text, kScheme)) return {};
  size_t length = run_length(text.substr(kScheme.size()), is_token_char);
  return length >= kShortestKey ? Find{kScheme.size(), length} : Find{};
}

// token=..., "token":"..."
Find find_assignment(std::string_view text) {
  size_t name = run_length(text, is_key_char);
  if (name == 0 || name == text.size()) return {};
  size_t begin = name;
  if (text[begin] == '=') {
    begin++;
  } else if (text.substr(begin).starts_with("\":\"")) {
    begin += 3;
  } else {
    return {};
  }
  if (!names_secret(text.substr(0, name))) return {};
  std::string_view value = text.substr(begin);
  bool quoted = text[begin - 1] == '"';
  if (!quoted && value.starts_with('"')) {
    quoted = true;
    begin++;
    value.remove_prefix(1);
  }
  size_t end = value.find_first_of(quoted ? "\"" : " \t\r\n\"'&;,");
  return {begin, std::min(end, value.size())};
}

// ://user:password@
Find find_url_password(std::string_view text) {
  constexpr std::string_view kBegin = "://";
  if (!text.starts_with(kBegin)) return {};
  std::string_view authority = text.substr(kBegin.size());
  authority = authority.substr(0, authority.find_first_of("/?# \t\r\n\""));
  size_t at = authority.rfind('@');
  if (at == authority.npos) return {};
  size_t colon = authority.find(':');
  if (colon >= at) return {kBegin.size(), at};  // a user alone is often the token itself
  return {kBegin.size() + colon + 1, at - colon - 1};
}

// What begins at text[i]. Where a word may begin is decided so that no part is looked at for every
// one of its bytes.
Find find_secret(std::string_view text, size_t i) {
  std::string_view rest = text.substr(i);
  if (rest[0] == ':') return find_url_password(rest);
  if (!is_alnum(rest[0]) || (i > 0 && is_alnum(text[i - 1]))) return {};
  for (auto find : {find_key, find_web_token, find_bearer}) {
    if (Find found = find(rest); found.hide > 0) return found;
  }
  return i > 0 && is_key_char(text[i - 1]) ? Find{} : find_assignment(rest);
}

}  // namespace

bool names_secret(std::string_view name) {
  std::string word;
  for (size_t i = 0; i < name.size(); i++) {
    bool begins = is_upper(name[i]) && i > 0 && is_lower(name[i - 1]);
    if (begins || !is_alnum(name[i])) {
      if (is_secret_word(word)) return true;
      word.clear();
    }
    if (is_alnum(name[i])) word.push_back(to_lower(name[i]));
  }
  return is_secret_word(word);
}

std::string redact(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    Find found = find_secret(text, i);
    if (found.hide == 0) {
      out.push_back(text[i++]);
      continue;
    }
    out.append(text.substr(i, found.keep)).append(kRedacted);
    i += found.keep + found.hide;
  }
  return out;
}

}  // namespace atl
