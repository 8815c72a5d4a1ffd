// Ports of sandboxes that the server answers itself, as E2B's clients ask for them by host or
// header: what listens there inside is not reached from outside.
#pragma once

#include <string_view>

namespace atl::api {

inline constexpr std::string_view kDaemonPort = "49983";
inline constexpr std::string_view kInterpreterPort = "49999";

}  // namespace atl::api
