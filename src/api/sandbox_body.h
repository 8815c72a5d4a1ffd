// The bodies of create and update: every option that is known, and a refusal by name for the rest.
#pragma once

#include "api/context.h"

namespace atl::api {

Result<sandbox::Spec> read_spec(const Service& service, const http::JsonDocument& document);
Result<sandbox::Changes> read_changes(const sandbox::Spec& present,
                                      const http::JsonDocument& document);

}  // namespace atl::api
