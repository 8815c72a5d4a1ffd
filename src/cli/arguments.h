// Finds the verb among the words, and where the command to run in a sandbox begins.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace atl::cli {

struct CutCommandLine {
  std::vector<const Command*> path;  // from the root to the verb
  std::vector<std::string> words;    // all but the rest
  std::vector<std::string> rest;     // after "--", or after the verb's last argument
  std::string unknown;               // a word where a verb was expected
  size_t arguments = 0;              // how many the verb was given
  const Option* open = nullptr;      // an option at the very end that still wants its value
};

// The command below `parent` whose name is almost `word`; null where none is.
const Command* similar_command(const Command& parent, std::string_view word);

CutCommandLine cut_command_line(const Command& root, const std::vector<std::string>& words);

}  // namespace atl::cli
