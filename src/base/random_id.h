#pragma once

#include <string>
#include <string_view>

namespace atl {

// "sandbox-4f1c09d2a7be": prefix plus `digits` random hex digits from the kernel.
std::string random_id(std::string_view prefix, int digits = 12);

// Ids cross the privilege boundary and become file names, so only [a-z0-9-], 1 to 64 characters,
// not starting with '-'.
bool is_valid_id(std::string_view id);

}  // namespace atl
