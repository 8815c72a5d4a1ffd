#include "cli/arguments.h"

#include <algorithm>
#include <numeric>

namespace atl::cli {
namespace {

bool has_flag(const Option& option, std::string_view flag) {
  std::string_view flags = option.flags;
  while (!flags.empty()) {
    size_t comma = flags.find(',');
    if (flags.substr(0, comma) == flag) return true;
    flags.remove_prefix(comma == flags.npos ? flags.size() : comma + 1);
  }
  return false;
}

const Option* find_option(const std::vector<const Command*>& path, std::string_view flag) {
  for (const Command* command : path) {
    for (const Option& option : command->options) {
      if (has_flag(option, flag)) return &option;
    }
  }
  return nullptr;
}

// The option that takes the next word as its value: "--env", or the last of "-ite".
const Option* wanting_value(const std::vector<const Command*>& path, std::string_view word) {
  if (word.starts_with("--")) {
    const Option* option = find_option(path, word);
    return option != nullptr && !option->value.empty() ? option : nullptr;
  }
  for (size_t i = 1; i < word.size(); i++) {
    const Option* option = find_option(path, std::string("-") + word[i]);
    if (option == nullptr) return nullptr;
    if (!option->value.empty()) return i + 1 == word.size() ? option : nullptr;
  }
  return nullptr;
}

const Command* find_command(const Command& parent, std::string_view name) {
  for (const Command& command : parent.commands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

// How many letters to add, drop or change to make one of the other.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); i++) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); j++) {
      size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row.back();
}

}  // namespace

const Command* similar_command(const Command& parent, std::string_view word) {
  const Command* best = nullptr;
  size_t smallest = word.size() > 4 ? 3 : 2;  // beyond which it is a guess
  for (const Command& command : parent.commands) {
    size_t distance = edit_distance(command.name, word);
    if (command.hidden || distance >= smallest) continue;
    smallest = distance;
    best = &command;
  }
  return best;
}

CutCommandLine cut_command_line(const Command& root, const std::vector<std::string>& words) {
  CutCommandLine cut;
  cut.path.push_back(&root);
  for (size_t i = 0; i < words.size(); i++) {
    const std::string& word = words[i];
    const Command& command = *cut.path.back();
    bool takes_rest = command.rest != nullptr;
    if (takes_rest && word == "--") {
      cut.rest.assign(words.begin() + static_cast<ptrdiff_t>(i) + 1, words.end());
      return cut;
    }
    bool option = word.size() > 1 && word[0] == '-';
    if (!option && takes_rest && cut.arguments == command.arguments.size()) {
      cut.rest.assign(words.begin() + static_cast<ptrdiff_t>(i), words.end());
      return cut;
    }
    cut.words.push_back(word);
    if (option) {
      cut.open = wanting_value(cut.path, word);
      if (cut.open == nullptr) continue;
      if (i + 1 == words.size()) return cut;
      cut.words.push_back(words[++i]);
      cut.open = nullptr;
      continue;
    }
    if (command.commands.empty()) {
      cut.arguments++;
    } else if (const Command* below = find_command(command, word)) {
      cut.path.push_back(below);
    } else if (cut.unknown.empty()) {
      cut.unknown = word;
    }
  }
  return cut;
}

}  // namespace atl::cli
