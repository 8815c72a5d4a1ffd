#pragma once

#include "cli/command.h"

namespace atl::cli {

Command code_command();

}  // namespace atl::cli
