#include "egress/name.h"

#include "egress/address.h"

namespace atl::egress {

std::optional<std::string> canonical_name(std::string_view text) {
  if (text.ends_with('.')) text.remove_suffix(1);
  if (text.empty() || text.size() > 253) return std::nullopt;
  std::string name;
  name.reserve(text.size());
  size_t label = 0;
  bool only_digits = true;  // of the last label: "1.2.3", "0x7f.1" are addresses to some
  for (char c : text) {
    if (c == '.') {
      if (label == 0) return std::nullopt;
      label = 0;
      only_digits = true;
      name.push_back(c);
      continue;
    }
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    bool letter = c >= 'a' && c <= 'z';
    bool digit = c >= '0' && c <= '9';
    if (!letter && !digit && c != '-' && c != '_') return std::nullopt;
    if (!digit) only_digits = only_digits && label == 1 && c == 'x' && name.back() == '0';
    if (++label > 63) return std::nullopt;
    name.push_back(c);
  }
  if (label == 0 || only_digits) return std::nullopt;
  return name;
}

}  // namespace atl::egress
