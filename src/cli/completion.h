#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace atl::cli {

// What could stand in place of the last word; asks the server for names where they fit.
std::vector<std::string> complete_words(const Command& root, const std::vector<std::string>& words);

}  // namespace atl::cli
