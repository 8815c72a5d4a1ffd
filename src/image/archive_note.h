// What the maker of an archive says of it, at the archive's end: in a frame that every zstd decoder
// skips.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::image {

Result<void> append_note(int file, std::string_view note);
// Empty where there is none.
Result<std::string> read_note(int file);

}  // namespace atl::image
