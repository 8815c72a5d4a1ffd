#pragma once

#include <string_view>

#include "atoll/types.h"

namespace atl {

// As the API's events and the command line name it: "created".
std::string_view to_string(FileChange change);

}  // namespace atl
