#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace atl::cli {

// What could stand in place of the last word.
struct Completion {
  std::vector<std::string> words;
  bool files = false;  // a local path fits too
};

// Asks the server for names where they fit.
Completion complete(const Command& root, const std::vector<std::string>& words);

}  // namespace atl::cli
