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
// The parts that other protocols' bodies have too.
Result<void> check_variables(const std::map<std::string, std::string>& env, std::string_view field);
Result<std::map<std::string, std::string>> read_metadata(http::JsonObjectReader& reader);
// What belongs to the one sandbox and not to its copies is left out.
sandbox::Spec copied_spec(const sandbox::Spec& source);
// Field by field: what the request says, else the template, else the server.
Limits limits_for(const Service& service, const Limits& request, const Limits& of_template);

Result<sandbox::Changes> read_changes(const sandbox::Spec& present,
                                      const http::JsonDocument& document);

// What a template's sandboxes have; fields that are not there leave it as it is.
Result<void> read_settings(http::JsonObjectReader& reader, TemplateSettings& settings);

}  // namespace atl::api
