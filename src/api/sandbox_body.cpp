#include "api/sandbox_body.h"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cmath>

#include "api/network_body.h"
#include "egress/policy_json.h"
#include "image/template.h"

namespace atl::api {
namespace {

namespace json = boost::json;
using http::JsonObjectReader;

constexpr double kMaxCores = 1024;
constexpr double kMaxMegabytes = 16.0 * 1024 * 1024;
constexpr int64_t kMaxSeconds = int64_t{10} * 365 * 86400;
constexpr size_t kMaxMetadata = 64;

Error bad(std::string_view field, std::string message) {
  return Error(ErrorCode::InvalidArgument, std::move(message)).with_field(field);
}

// A finite number of units in (0, max], or nothing.
Result<std::optional<double>> amount(JsonObjectReader& reader, std::string_view name, double max) {
  ATOLL_ASSIGN(auto value, reader.optional_number(name));
  if (!value) return std::nullopt;
  if (!std::isfinite(*value) || *value <= 0 || *value > max) {
    return fail(bad("resources." + std::string(name),
                    std::string(name) + " must be more than 0 and at most " +
                        std::to_string(static_cast<int64_t>(max))));
  }
  return value;
}

Result<void> read_resources(JsonObjectReader& reader, Limits& limits) {
  ATOLL_ASSIGN(auto resources, reader.optional_object("resources"));
  if (!resources) return {};
  ATOLL_ASSIGN(auto cores, amount(*resources, "cpuCores", kMaxCores));
  ATOLL_ASSIGN(auto memory, amount(*resources, "memoryMB", kMaxMegabytes));
  ATOLL_ASSIGN(auto disk, amount(*resources, "diskGB", 1 << 20));
  ATOLL_ASSIGN(auto pids, resources->optional_integer("pids", 8, 4'000'000));
  ATOLL_TRY(resources->finish());
  if (cores) limits.cpu_millis = static_cast<uint32_t>(std::max(10.0, std::round(*cores * 1000)));
  if (memory) {
    if (*memory < 8)
      return fail(bad("resources.memoryMB", "a sandbox needs at least 8 MB of memory"));
    limits.memory_bytes = static_cast<uint64_t>(*memory * (1 << 20));
  }
  if (disk) {
    if (*disk < 0.0625)
      return fail(bad("resources.diskGB", "a disk has at least 0.0625 GB (64 MB)"));
    limits.disk_bytes = static_cast<uint64_t>(*disk * (1 << 30));
  }
  if (pids) limits.pids = static_cast<uint32_t>(*pids);
  return {};
}

// Options of the SDKs that this version does not have. `false` and null ask for nothing.
constexpr std::string_view kUnbuilt[] = {
    "image",
    "tools",
    "bare",
    "backend",
    "permissions",
    "sshEnabled",
    "sshPublicKey",
    "sshPublicKeys",
    "sshKeyIds",
    "storage",
    "publicTemplateId",
    "publicTemplateVersionId",
    "teamId",
    "capabilities",
    "privacy",
    "confidential",
    "agent",
    "ownerContext",
    "billingOwnerId",
    "integrations",
    "integrationIds",
    "integrationBundles",
};

Result<void> refuse_unbuilt(JsonObjectReader& reader) {
  for (std::string_view name : kUnbuilt) {
    const json::value* value = reader.any(name);
    if (value == nullptr || value->is_null()) continue;
    if (value->is_bool() && !value->get_bool()) continue;
    return fail(Error(ErrorCode::NotSupported,
                      "'" + std::string(name) + "' is not supported by this server yet")
                    .with_field(name));
  }
  return {};
}

Result<void> read_driver(JsonObjectReader& reader) {
  ATOLL_ASSIGN(auto driver, reader.optional_object("driver"));
  if (!driver) return {};
  ATOLL_ASSIGN(auto type, driver->optional_string("type"));
  ATOLL_TRY(driver->finish());
  if (!type || *type == "native") return {};
  return fail(Error(ErrorCode::NotSupported, "this server has the driver 'native' only")
                  .with_field("driver.type"));
}

Result<void> read_git(JsonObjectReader& reader, sandbox::Spec& spec) {
  ATOLL_ASSIGN(auto git, reader.optional_object("git"));
  if (!git) return {};
  ATOLL_ASSIGN(spec.git.url, git->require_string("url"));
  ATOLL_ASSIGN(auto ref, git->optional_string("ref"));
  ATOLL_ASSIGN(auto depth, git->optional_integer("depth", 1, 1'000'000));
  ATOLL_ASSIGN(spec.git.sparse, git->string_array("sparse"));
  ATOLL_ASSIGN(auto auth, git->optional_object("auth"));
  if (auth) {
    ATOLL_ASSIGN(spec.git_token, auth->require_string("token"));
    ATOLL_TRY(auth->finish());
  }
  ATOLL_TRY(git->finish());
  spec.git.ref = ref.value_or("");
  spec.git.depth = static_cast<uint32_t>(depth.value_or(0));
  for (const std::string* text : {&spec.git.url, &spec.git.ref}) {
    if (text->starts_with('-') || text->find('\0') != text->npos || text->size() > 2048) {
      return fail(bad(text == &spec.git.url ? "git.url" : "git.ref", "this is not a git name"));
    }
  }
  if (spec.git.url.empty()) return fail(bad("git.url", "give the repository's URL"));
  if (spec.git_token.find_first_of("\r\n\0", 0, 3) != std::string::npos) {
    return fail(bad("git.auth.token", "a token is one line"));
  }
  return {};
}

// ["NAME", ...] or "all".
Result<void> read_secrets(JsonObjectReader& reader, sandbox::Spec& spec) {
  const json::value* value = reader.any("secrets");
  if (value == nullptr || value->is_null()) return {};
  if (value->is_string() && value->get_string() == "all") {
    spec.all_secrets = true;
    return {};
  }
  if (!value->is_array()) return fail(bad("secrets", "a list of names, or \"all\""));
  for (const json::value& name : value->get_array()) {
    if (!name.is_string()) return fail(bad("secrets", "a list of names, or \"all\""));
    spec.secrets.emplace_back(name.get_string());
  }
  return {};
}

Result<std::string> read_template(JsonObjectReader& reader, const sandbox::Spec* base) {
  ATOLL_ASSIGN(auto environment, reader.optional_string("environment"));
  ATOLL_ASSIGN(auto template_id, reader.optional_string("templateId"));
  if (environment && template_id && *environment != *template_id) {
    return fail(bad("templateId", "give either environment or templateId"));
  }
  std::string present = base != nullptr ? base->template_name : "base";
  std::string name = template_id.value_or(environment.value_or(present));
  if (base != nullptr && name != present) {
    return fail(bad(template_id ? "templateId" : "environment",
                    "the snapshot stands on the template '" + present + "'"));
  }
  auto parsed = image::parse_template_reference(name);
  if (parsed) return name;
  return fail(bad(template_id ? "templateId" : "environment", parsed.error().message()));
}

Result<uint32_t> read_seconds(JsonObjectReader& reader, std::string_view name, uint32_t fallback) {
  ATOLL_ASSIGN(auto seconds, reader.optional_integer(name, 0, kMaxSeconds));
  return static_cast<uint32_t>(seconds.value_or(fallback));
}

Result<void> read_lifetimes(JsonObjectReader& reader, sandbox::Spec& spec) {
  ATOLL_ASSIGN(spec.max_lifetime_s,
               read_seconds(reader, "maxLifetimeSeconds", spec.max_lifetime_s));
  ATOLL_ASSIGN(spec.idle_timeout_s,
               read_seconds(reader, "idleTimeoutSeconds", spec.idle_timeout_s));
  ATOLL_ASSIGN(spec.delete_after_stopped_s,
               read_seconds(reader, "deleteAfterStoppedSeconds", spec.delete_after_stopped_s));
  ATOLL_ASSIGN(auto resume, reader.optional_bool("autoResume"));
  if (resume) spec.auto_resume = *resume;
  return {};
}

Result<void> read_profile(JsonObjectReader& reader, sandbox::Spec& spec) {
  ATOLL_ASSIGN(auto profile, reader.optional_string("profile"));
  if (!profile) return {};
  if (*profile != "dev" && *profile != "strict") {
    return fail(bad("profile", "a profile is 'dev' or 'strict'"));
  }
  spec.profile = *profile == "strict" ? Profile::Strict : Profile::Dev;
  return {};
}

Result<void> read_name(JsonObjectReader& reader, sandbox::Spec& spec) {
  ATOLL_ASSIGN(auto name, reader.optional_string("name"));
  if (name && name->empty()) return fail(bad("name", "leave the name out or give one"));
  spec.name = name.value_or("");
  return {};
}

// Given variables win over those that are there.
Result<void> read_env(JsonObjectReader& reader, sandbox::Spec& spec) {
  ATOLL_ASSIGN(auto env, reader.string_map("env"));
  ATOLL_TRY(check_variables(env, "env"));
  env.insert(spec.env.begin(), spec.env.end());
  spec.env = std::move(env);
  return {};
}

sandbox::Spec defaults(const Service& service) {
  sandbox::Spec spec;
  spec.limits = service.manager.default_limits();
  spec.max_lifetime_s = service.settings.max_lifetime_s;
  spec.idle_timeout_s = service.settings.idle_timeout_s;
  spec.delete_after_stopped_s = service.settings.delete_after_stopped_s;
  return spec;
}

// Field by field; 0 is what nobody has said.
Limits first_given(const Limits& request, const Limits& of_template, const Limits& usual) {
  auto pick = [](auto first, auto second, auto third) {
    return first != 0 ? first : (second != 0 ? second : third);
  };
  Limits limits;
  limits.memory_bytes = pick(request.memory_bytes, of_template.memory_bytes, usual.memory_bytes);
  limits.cpu_millis = pick(request.cpu_millis, of_template.cpu_millis, usual.cpu_millis);
  limits.pids = pick(request.pids, of_template.pids, usual.pids);
  limits.disk_bytes = pick(request.disk_bytes, of_template.disk_bytes, usual.disk_bytes);
  return limits;
}

}  // namespace

Result<void> check_variables(const std::map<std::string, std::string>& env,
                             std::string_view field) {
  std::string prefix = std::string(field) + ".";
  for (const auto& [name, value] : env) {
    if (name.empty() || name.find('=') != name.npos || name.find('\0') != name.npos ||
        value.find('\0') != value.npos) {
      return fail(bad(prefix + name, "a variable's name has no '=' and neither part a NUL byte"));
    }
    if (value.size() > 131072)
      return fail(bad(prefix + name, "a variable has at most 131072 bytes"));
  }
  return {};
}

Result<std::map<std::string, std::string>> read_metadata(JsonObjectReader& reader) {
  ATOLL_ASSIGN(auto metadata, reader.string_map("metadata"));
  if (metadata.size() > kMaxMetadata) return fail(bad("metadata", "at most 64 entries"));
  for (const auto& [key, value] : metadata) {
    if (key.size() > 256 || value.size() > 4096) {
      return fail(
          bad("metadata." + key.substr(0, 64), "a key has at most 256 bytes, a value 4096"));
    }
  }
  return metadata;
}

sandbox::Spec copied_spec(const sandbox::Spec& source) {
  sandbox::Spec spec = source;
  spec.name.clear();
  spec.idempotency_key.clear();
  spec.git = {};
  spec.from_pool = false;
  return spec;
}

Limits limits_for(const Service& service, const Limits& request, const Limits& of_template) {
  return first_given(request, of_template, service.manager.default_limits());
}

Result<std::string> read_snapshot_name(const http::JsonDocument& document) {
  ATOLL_ASSIGN(const json::object* object, document.object());
  JsonObjectReader reader(*object);
  ATOLL_ASSIGN(auto snapshot, reader.optional_string("fromSnapshot"));
  if (snapshot && snapshot->empty()) return fail(bad("fromSnapshot", "give a snapshot's id"));
  return snapshot.value_or("");
}

Result<ForkBody> read_forks(const sandbox::Spec& source, const http::JsonDocument& document) {
  constexpr int64_t kMost = 1000;
  ATOLL_ASSIGN(const json::object* object, document.object());
  JsonObjectReader reader(*object);
  sandbox::Spec spec = copied_spec(source);
  ATOLL_ASSIGN(auto count, reader.optional_integer("count", 1, kMost));
  ATOLL_TRY(read_name(reader, spec));
  ATOLL_TRY(read_env(reader, spec));
  ATOLL_TRY(read_resources(reader, spec.limits));
  if (reader.has("metadata")) {
    ATOLL_ASSIGN(spec.metadata, read_metadata(reader));
  }
  ATOLL_ASSIGN(auto checkpoint, reader.optional_string("checkpointId"));
  ATOLL_ASSIGN(auto memory, reader.optional_bool("memory"));
  ATOLL_TRY(reader.finish());
  if (checkpoint && memory == false) {
    return fail(Error(ErrorCode::InvalidArgument, "a checkpoint is forked with its memory")
                    .with_field("memory"));
  }
  ForkBody body{
      .specs = {}, .checkpoint = checkpoint.value_or(""), .memory = memory.value_or(false)};
  std::vector<sandbox::Spec>& specs = body.specs;
  specs.assign(static_cast<size_t>(count.value_or(1)), spec);
  // One name cannot be that of several: they are numbered.
  for (size_t i = 0; !spec.name.empty() && specs.size() > 1 && i < specs.size(); i++) {
    specs[i].name += "-" + std::to_string(i + 1);
  }
  return body;
}

Result<sandbox::Spec> read_spec(const Service& service, const http::JsonDocument& document,
                                const sandbox::Spec* base) {
  ATOLL_ASSIGN(const json::object* object, document.object());
  JsonObjectReader reader(*object);
  sandbox::Spec spec = base != nullptr ? copied_spec(*base) : defaults(service);
  ATOLL_TRY(read_name(reader, spec));
  ATOLL_ASSIGN(spec.template_name, read_template(reader, base));
  ATOLL_TRY(read_env(reader, spec));
  ATOLL_TRY(read_secrets(reader, spec));
  Limits given;
  ATOLL_TRY(read_resources(reader, given));
  ATOLL_TRY(read_profile(reader, spec));
  ATOLL_ASSIGN(auto user, reader.optional_string("user"));
  ATOLL_TRY(read_lifetimes(reader, spec));
  ATOLL_ASSIGN(auto ephemeral, reader.optional_bool("ephemeral"));
  ATOLL_ASSIGN(auto history, reader.optional_bool("history"));
  if (reader.has("metadata")) {
    ATOLL_ASSIGN(spec.metadata, read_metadata(reader));
  }
  ATOLL_TRY(read_git(reader, spec));
  if (base != nullptr && !spec.git.url.empty()) {
    return fail(bad("git", "a sandbox from a snapshot has its files already"));
  }
  ATOLL_TRY(reader.optional_string("fromSnapshot"));
  ATOLL_TRY(reader.optional_string("fromSandboxId"));
  ATOLL_TRY(read_driver(reader));
  ATOLL_ASSIGN(auto key, reader.optional_string("idempotencyKey"));
  ATOLL_ASSIGN(auto pool, reader.optional_bool("pool"));
  ATOLL_TRY(reader.optional_bool("webTerminalEnabled"));  // terminals are always there
  ATOLL_ASSIGN(bool has_network, read_network(reader, spec));
  ATOLL_TRY(refuse_unbuilt(reader));
  ATOLL_TRY(reader.finish());
  FoundTemplate found;
  if (base == nullptr) {
    ATOLL_ASSIGN(found, service.manager.backend().find_template(spec.template_name));
  }
  spec.limits = base != nullptr ? first_given(given, Limits(), spec.limits)
                                : limits_for(service, given, found.settings.limits);
  if (!found.settings.user.empty()) spec.user = found.settings.user;
  if (!has_network && !found.settings.network.empty()) {
    ATOLL_ASSIGN(spec.network, egress::parse_policy(found.settings.network));
  }
  if (user) spec.user = *user;
  if (ephemeral) spec.ephemeral = *ephemeral;
  if (history) spec.history = *history;
  spec.idempotency_key = key.value_or("");
  if (spec.idempotency_key.size() > 256) return fail(bad("idempotencyKey", "at most 256 bytes"));
  spec.from_pool = pool.value_or(true);
  return spec;
}

Result<void> read_settings(JsonObjectReader& reader, TemplateSettings& settings) {
  if (reader.has("env")) {
    ATOLL_ASSIGN(settings.env, reader.string_map("env"));
    ATOLL_TRY(check_variables(settings.env, "env"));
  }
  ATOLL_ASSIGN(auto workdir, reader.optional_string("workdir"));
  ATOLL_ASSIGN(auto user, reader.optional_string("user"));
  if (workdir) settings.workdir = *workdir;
  if (user) settings.user = *user;
  const json::value* network = reader.any("network");
  if (network != nullptr && !network->is_null()) {
    ATOLL_ASSIGN(NetworkPolicy policy, read_policy(*network, "network"));
    settings.network = egress::write_policy(policy);
  }
  if (!settings.workdir.empty() && !settings.workdir.starts_with('/')) {
    return fail(bad("workdir", "an absolute path"));
  }
  return read_resources(reader, settings.limits);
}

Result<sandbox::Changes> read_changes(const sandbox::Spec& present,
                                      const http::JsonDocument& document) {
  ATOLL_ASSIGN(const json::object* object, document.object());
  JsonObjectReader reader(*object);
  sandbox::Changes changes;
  Limits limits = present.limits;
  ATOLL_TRY(read_resources(reader, limits));
  if (limits != present.limits) changes.limits = limits;
  auto seconds = [&](std::string_view name, std::optional<uint32_t>& into) -> Result<void> {
    ATOLL_ASSIGN(auto value, reader.optional_integer(name, 0, kMaxSeconds));
    if (value) into = static_cast<uint32_t>(*value);
    return {};
  };
  ATOLL_TRY(seconds("idleTimeoutSeconds", changes.idle_timeout_s));
  ATOLL_TRY(seconds("maxLifetimeSeconds", changes.max_lifetime_s));
  ATOLL_TRY(seconds("deleteAfterStoppedSeconds", changes.delete_after_stopped_s));
  if (reader.has("metadata")) {
    ATOLL_ASSIGN(changes.metadata, read_metadata(reader));
  }
  ATOLL_TRY(reader.finish());
  return changes;
}

}  // namespace atl::api
