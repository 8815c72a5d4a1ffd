// What a route asks of its caller, and who has it.
#pragma once

#include "api/principal.h"

namespace atl::api {

enum class Access : uint8_t {
  Open,   // no credentials
  Read,   // of the tenant's things
  Write,  // changes the tenant's things
  Admin,  // the installation's
  RuntimeRead,
  RuntimeWrite,
  RuntimeTerminal,  // one terminal, named by its connection id
};
std::string_view to_string(Access access);

constexpr bool is_runtime(Access access) { return access >= Access::RuntimeRead; }
constexpr bool changes(Access access) {
  return access != Access::Open && access != Access::Read && access != Access::RuntimeRead;
}

Result<void> authorize(const Principal& who, Access access, const http::Request& request);

}  // namespace atl::api
