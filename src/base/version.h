#pragma once

namespace atl {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace atl
