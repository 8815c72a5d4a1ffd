#pragma once

#include <string>

#include "base/result.h"

namespace atl::cli {

// All of standard input, without a newline at its end; on a terminal one line, which is asked for
// with `prompt` and not shown. Cancelled where a signal came instead.
Result<std::string> read_hidden(const std::string& prompt, size_t limit);

}  // namespace atl::cli
