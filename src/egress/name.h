// Host names in the one form in which they are compared.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace atl::egress {

// Lower case, without the dot at the end; nothing where it is not a host name of letters, digits,
// '-' and '_' in labels of at most 63. An address is not a name.
std::optional<std::string> canonical_name(std::string_view text);

}  // namespace atl::egress
