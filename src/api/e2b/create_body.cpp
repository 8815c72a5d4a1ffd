#include "api/e2b/create_body.h"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "api/e2b/lifetime.h"
#include "api/e2b/network_body.h"
#include "api/sandbox_body.h"
#include "image/template.h"

namespace atl::api::e2b {
namespace {

namespace json = boost::json;
using http::JsonObjectReader;

constexpr std::string_view kDefaultTag = ":default";

Result<void> refuse_given(JsonObjectReader& reader, std::string_view name, std::string why) {
  const json::value* value = reader.any(name);
  bool given = value != nullptr && !value->is_null() &&
               !(value->is_array() && value->get_array().empty()) &&
               !(value->is_object() && value->get_object().empty());
  if (!given) return {};
  return fail(Error(ErrorCode::NotSupported,
                    "'" + std::string(name) + "' is not supported by this server: " + why)
                  .with_field(name));
}

Result<void> read_lifecycle(JsonObjectReader& reader, uint32_t default_timeout,
                            sandbox::Spec& spec) {
  ATOLL_ASSIGN(auto timeout, reader.optional_integer("timeout", 0, kMaxTimeoutSeconds));
  ATOLL_ASSIGN(auto pause, reader.optional_bool("autoPause"));
  ATOLL_ASSIGN(auto memory, reader.optional_bool("autoPauseMemory"));
  ATOLL_ASSIGN(auto resume, reader.optional_object("autoResume"));
  bool resumes = false;
  if (resume) {
    ATOLL_ASSIGN(resumes, resume->require_bool("enabled"));
    ATOLL_TRY(resume->finish());
  }
  // Zero would be "never": what is to end now ends at the next look.
  auto seconds = static_cast<uint32_t>(timeout.value_or(default_timeout));
  spec.max_lifetime_s = std::max<uint32_t>(1, seconds);
  spec.idle_timeout_s = 0;
  spec.delete_after_stopped_s = 0;
  spec.auto_resume = resumes;
  spec.at_lifetime = sandbox::AtLifetime::Delete;
  if (!pause.value_or(false)) return {};
  // Without its memory a pause is a stop, from which only a request brings it back.
  spec.at_lifetime = memory.value_or(true) ? sandbox::AtLifetime::Pause : sandbox::AtLifetime::Stop;
  if (!memory.value_or(true) && resumes) {
    return fail(Error(ErrorCode::InvalidArgument,
                      "a sandbox that pauses without its memory cannot resume by itself")
                    .with_field("autoResume"));
  }
  return {};
}

Result<void> read_variables(JsonObjectReader& reader, sandbox::Spec& spec) {
  ATOLL_ASSIGN(auto variables, reader.string_map("envVars"));
  ATOLL_TRY(check_variables(variables, "envVars"));
  for (auto& [name, value] : variables) spec.env[name] = value;
  if (!reader.has("metadata")) return {};
  ATOLL_ASSIGN(spec.metadata, read_metadata(reader));
  return {};
}

// What the packages of the code interpreter ask for: every template of ours can be it.
constexpr std::string_view kInterpreterTemplate = "code-interpreter-v1";

// Clients expect the user "user", which our own templates have; of others, whom they name.
Result<void> take_template(Context& context, std::string name, sandbox::Spec& spec) {
  if (name == kInterpreterTemplate && !context.manager.backend().find_template(name)) name = "base";
  auto parsed = image::parse_template_reference(name);
  if (!parsed) return fail(Error(parsed.error()).with_field("templateID"));
  spec.template_name = name;
  auto found = context.manager.backend().find_template(name);
  if (!found) return fail(std::move(found).error().with_field("templateID"));
  spec.limits = limits_for(context.service, Limits(), found->settings.limits);
  spec.user =
      !found->settings.user.empty() ? found->settings.user : (name == "base" ? "user" : "root");
  return {};
}

}  // namespace

sandbox::SnapshotPtr find_snapshot(Context& context, std::string_view reference) {
  if (reference.ends_with(kDefaultTag)) reference.remove_suffix(kDefaultTag.size());
  return context.manager.snapshots().find(context.who.caller, std::string(reference));
}

Result<CreateOrder> read_create(Context& context, const http::Request& request,
                                const http::JsonDocument& document, uint32_t default_timeout) {
  ATOLL_ASSIGN(const json::object* object, document.object());
  JsonObjectReader reader(*object);
  ATOLL_ASSIGN(std::string name, reader.require_string("templateID"));
  CreateOrder order;
  order.snapshot = find_snapshot(context, name);
  if (order.snapshot != nullptr) {
    order.spec = copied_spec(order.snapshot->source.spec);
  } else {
    ATOLL_TRY(take_template(context, name, order.spec));
  }
  ATOLL_TRY(read_lifecycle(reader, default_timeout, order.spec));
  ATOLL_TRY(read_variables(reader, order.spec));
  ATOLL_ASSIGN(NetworkWish network, read_network(reader));
  order.spec.network = std::move(network.policy);
  order.spec.ingress = std::move(network.ingress);
  ATOLL_TRY(reader.optional_bool("secure"));  // every sandbox is
  ATOLL_TRY(refuse_given(reader, "mcp", "start the servers with a command"));
  ATOLL_TRY(refuse_given(reader, "iam", "it has no workload identities"));
  ATOLL_TRY(refuse_given(reader, "volumeMounts", "it has no volumes"));
  ATOLL_TRY(reader.finish());
  order.spec.idempotency_key = request.headers.get("idempotency-key").value_or("");
  if (order.spec.idempotency_key.size() > 256) {
    return fail(
        Error(ErrorCode::InvalidArgument, "at most 256 bytes").with_field("Idempotency-Key"));
  }
  return order;
}

}  // namespace atl::api::e2b
