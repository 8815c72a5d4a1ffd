// The body of a create: every field that is known, and a refusal by name for the rest.
#pragma once

#include "api/context.h"

namespace atl::api::e2b {

struct CreateOrder {
  sandbox::SnapshotPtr snapshot;  // what it is made from, where the template is one
  sandbox::Spec spec;
};

// The two versions of the call differ in how long a sandbox lives when nobody says.
inline constexpr uint32_t kTimeoutOfFirstVersion = 15;

Result<CreateOrder> read_create(Context& context, const http::Request& request,
                                const http::JsonDocument& document, uint32_t default_timeout);

// A snapshot by its id or name, with or without the tag ":default" that E2B appends.
sandbox::SnapshotPtr find_snapshot(Context& context, std::string_view reference);

}  // namespace atl::api::e2b
