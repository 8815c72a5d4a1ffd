#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace atl {

// TooLarge beyond `limit`.
Result<std::string> read_whole_file(const std::string& path, size_t limit = 64u << 20);

}  // namespace atl
