// The verbs of `atoll template` that have files of their own.
#pragma once

#include "cli/command.h"

namespace atl::cli {

Command import_template_command();
Command export_template_command();

}  // namespace atl::cli
