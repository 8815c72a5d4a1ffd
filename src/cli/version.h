#pragma once

#include <string_view>

namespace atl::cli {

inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace atl::cli
