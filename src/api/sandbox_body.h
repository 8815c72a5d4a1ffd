// The bodies of create and update: every option that is known, and a refusal by name for the rest.
#pragma once

#include "api/context.h"

namespace atl::api {

// What is not said is as in `base`, where the sandbox is made from a state.
Result<sandbox::Spec> read_spec(const Service& service, const http::JsonDocument& document,
                                const sandbox::Spec* base = nullptr);
// The snapshot that a create names; empty: none.
Result<std::string> read_snapshot_name(const http::JsonDocument& document);
struct ForkBody {
  std::vector<sandbox::Spec> specs;  // one for each copy
  std::string checkpoint;            // empty: of the sandbox as it is now
  bool memory = false;               // with what runs in it
};
// One for each copy.
Result<ForkBody> read_forks(const sandbox::Spec& source, const http::JsonDocument& document);
Result<sandbox::Changes> read_changes(const sandbox::Spec& present,
                                      const http::JsonDocument& document);

// What a template's sandboxes have; fields that are not there leave it as it is.
Result<void> read_settings(http::JsonObjectReader& reader, TemplateSettings& settings);

}  // namespace atl::api
