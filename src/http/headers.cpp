#include "http/headers.h"

#include <algorithm>
#include <array>

namespace atl::http {
namespace {

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

constexpr std::array<bool, 256> make_token_table() {
  std::array<bool, 256> table{};
  for (int c = '0'; c <= '9'; c++) table[static_cast<size_t>(c)] = true;
  for (int c = 'a'; c <= 'z'; c++) table[static_cast<size_t>(c)] = true;
  for (int c = 'A'; c <= 'Z'; c++) table[static_cast<size_t>(c)] = true;
  for (char c : std::string_view("!#$%&'*+-.^_`|~")) table[static_cast<size_t>(c)] = true;
  return table;
}
constexpr auto kToken = make_token_table();

}  // namespace

void Headers::add(std::string name, std::string value) {
  fields_.push_back(Field{std::move(name), std::move(value)});
}

void Headers::set(std::string name, std::string value) {
  remove(name);
  add(std::move(name), std::move(value));
}

void Headers::remove(std::string_view name) {
  std::erase_if(fields_, [&](const Field& f) { return equals_ignoring_case(f.name, name); });
}

std::optional<std::string_view> Headers::get(std::string_view name) const {
  for (const Field& field : fields_) {
    if (equals_ignoring_case(field.name, name)) return field.value;
  }
  return std::nullopt;
}

size_t Headers::count(std::string_view name) const {
  return static_cast<size_t>(std::count_if(fields_.begin(), fields_.end(), [&](const Field& f) {
    return equals_ignoring_case(f.name, name);
  }));
}

bool Headers::has_token(std::string_view name, std::string_view token) const {
  for (const Field& field : fields_) {
    if (!equals_ignoring_case(field.name, name)) continue;
    for (std::string_view element : split_list(field.value)) {
      if (equals_ignoring_case(element, token)) return true;
    }
  }
  return false;
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); i++) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::vector<std::string_view> split_list(std::string_view list) {
  std::vector<std::string_view> elements;
  while (!list.empty()) {
    size_t comma = list.find(',');
    std::string_view element = trim(list.substr(0, comma));
    if (!element.empty()) elements.push_back(element);
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return elements;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char c) { return kToken[static_cast<unsigned char>(c)]; });
}

bool is_field_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  });
}

}  // namespace atl::http
