// The verbs of `atoll template` that have files of their own.
#pragma once

#include "cli/command.h"

namespace atl::cli {

Command create_template_command();
Command set_template_command();
Command import_template_command();
Command export_template_command();

}  // namespace atl::cli
