// Sandboxes' ports, on hosts of their own and below /preview/.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <vector>

#include "api/protocol.h"

namespace atl::api::preview {

// To come before all others: what is for a sandbox's host is for nobody else.
std::vector<Protocol> protocols(Service& service, boost::asio::any_io_executor executor);

}  // namespace atl::api::preview
