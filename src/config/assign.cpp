// A setting's text becomes a value, or the reason why it cannot.
#include <algorithm>
#include <charconv>
#include <limits>

#include "base/units.h"
#include "config/settings.h"

namespace atl::config {
namespace {

tl::unexpected<Error> wrong(std::string_view text, std::string_view what) {
  return fail(ErrorCode::InvalidArgument,
              "'" + std::string(text) + "' is not " + std::string(what));
}

Result<std::string> read_name(std::string_view text) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  bool plain = text.find_first_not_of(kAllowed) == text.npos;
  if (text.empty() || text.size() > 64 || !plain || text[0] == '.' || text[0] == '-')
    return wrong(text, "a name of letters, digits, '.', '_' and '-'");
  return std::string(text);
}

Result<std::string> read_choice(const Setting& setting, std::string_view text) {
  if (std::find(setting.choices.begin(), setting.choices.end(), text) != setting.choices.end())
    return std::string(text);
  std::string all;
  for (std::string_view choice : setting.choices)
    all.append(all.empty() ? "" : ", ").append(choice);
  return wrong(text, "one of " + all);
}

Result<std::string> read_path(std::string_view text) {
  if (text.empty() || text.find('\0') != text.npos) return wrong(text, "a directory");
  return std::string(text);
}

Result<std::string> read_endpoint(std::string_view text) {
  if (text == "none") return std::string(text);
  constexpr std::string_view kWhat = "ADDRESS:PORT or none";
  size_t colon = text.find_last_of(':');
  if (colon == text.npos || colon == 0) return wrong(text, kWhat);
  std::string_view digits = text.substr(colon + 1);
  uint16_t port = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size()) return wrong(text, kWhat);
  return std::string(text);
}

Result<std::string> read_url(std::string_view text) {
  if (text.empty()) return std::string();
  bool scheme = text.starts_with("https://") || text.starts_with("http://");
  bool clean = text.find_first_of(" \t\r\n\"<>?#@") == text.npos;
  size_t host = text.find("//") + 2;
  if (!scheme || !clean || text.size() == host || text[host] == '/')
    return wrong(text, "a URL such as https://sandboxes.example.com");
  while (text.ends_with('/')) text.remove_suffix(1);
  return std::string(text);
}

Result<std::string> read_text(const Setting& setting, std::string_view text) {
  switch (setting.kind) {
    case Kind::Name:
      return read_name(text);
    case Kind::Choice:
      return read_choice(setting, text);
    case Kind::Path:
      return read_path(text);
    case Kind::Endpoint:
      return read_endpoint(text);
    case Kind::Url:
      return read_url(text);
    default:
      return std::string(text);
  }
}

Result<uint32_t> read_seconds(std::string_view text) {
  if (text == "0") return 0;
  ATOLL_ASSIGN(std::chrono::milliseconds time, parse_duration(text));
  int64_t seconds = time.count() / 1000;
  if (time.count() % 1000 != 0 || seconds > std::numeric_limits<uint32_t>::max())
    return wrong(text, "a time in whole seconds");
  return static_cast<uint32_t>(seconds);
}

Result<uint32_t> read_number(const Setting& setting, std::string_view text) {
  if (setting.kind == Kind::Duration) return read_seconds(text);
  if (setting.kind == Kind::Cores && text != "0") return parse_cores(text);
  return parse_count(text);
}

Result<uint64_t> read_size(std::string_view text) {
  if (text == "0") return 0;
  return parse_size(text);
}

Result<bool> read_switch(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return wrong(text, "true or false");
}

}  // namespace

Result<void> assign(const Setting& setting, std::string_view text, Config& config) {
  Slot slot = setting.slot(config);
  if (auto** into = std::get_if<std::string*>(&slot)) {
    ATOLL_ASSIGN(**into, read_text(setting, text));
  } else if (auto** number = std::get_if<uint32_t*>(&slot)) {
    ATOLL_ASSIGN(**number, read_number(setting, text));
  } else if (auto** size = std::get_if<uint64_t*>(&slot)) {
    ATOLL_ASSIGN(**size, read_size(text));
  } else if (auto** flag = std::get_if<bool*>(&slot)) {
    ATOLL_ASSIGN(**flag, read_switch(text));
  }
  return {};
}

Result<void> check(const Setting& setting, std::string_view text) {
  Config scratch;
  return assign(setting, text, scratch);
}

}  // namespace atl::config
