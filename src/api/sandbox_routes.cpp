#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>

#include "api/routes.h"
#include "api/shapes.h"
#include "base/random_id.h"

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

Result<void> check_env(const std::map<std::string, std::string>& env) {
  for (const auto& [name, value] : env) {
    if (name.empty() || name.find('=') != name.npos || name.find('\0') != name.npos ||
        value.find('\0') != value.npos) {
      return fail(bad("env." + name, "a variable's name has no '=' and neither part a NUL byte"));
    }
    if (value.size() > 131072)
      return fail(bad("env." + name, "a variable has at most 131072 bytes"));
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

Result<sandbox::Spec> read_spec(const Context& context, const http::JsonDocument& document) {
  ATOLL_ASSIGN(const json::object* object, document.object());
  JsonObjectReader reader(*object);
  sandbox::Spec spec;
  spec.limits = context.manager.default_limits();
  ATOLL_ASSIGN(auto name, reader.optional_string("name"));
  ATOLL_ASSIGN(auto environment, reader.optional_string("environment"));
  ATOLL_ASSIGN(auto template_id, reader.optional_string("templateId"));
  ATOLL_ASSIGN(spec.env, reader.string_map("env"));
  ATOLL_TRY(check_env(spec.env));
  ATOLL_TRY(read_resources(reader, spec.limits));
  ATOLL_ASSIGN(auto profile, reader.optional_string("profile"));
  ATOLL_ASSIGN(auto user, reader.optional_string("user"));
  ATOLL_ASSIGN(auto lifetime, reader.optional_integer("maxLifetimeSeconds", 0, kMaxSeconds));
  ATOLL_ASSIGN(auto idle, reader.optional_integer("idleTimeoutSeconds", 0, kMaxSeconds));
  ATOLL_ASSIGN(auto ephemeral, reader.optional_bool("ephemeral"));
  ATOLL_ASSIGN(spec.metadata, read_metadata(reader));
  ATOLL_ASSIGN(auto key, reader.optional_string("idempotencyKey"));
  ATOLL_ASSIGN(auto pool, reader.optional_bool("pool"));
  ATOLL_TRY(reader.finish());
  if (name && name->empty()) return fail(bad("name", "leave the name out or give one"));
  spec.name = name.value_or("");
  if (environment && template_id && *environment != *template_id) {
    return fail(bad("templateId", "give either environment or templateId"));
  }
  spec.template_name = template_id.value_or(environment.value_or("base"));
  if (!is_valid_id(spec.template_name)) {
    return fail(bad(template_id ? "templateId" : "environment",
                    "a template's name is of a-z, 0-9 and '-'"));
  }
  if (profile && *profile != "dev" && *profile != "strict") {
    return fail(bad("profile", "a profile is 'dev' or 'strict'"));
  }
  spec.profile = profile == "strict" ? Profile::Strict : Profile::Dev;
  spec.user = user.value_or("root");
  spec.max_lifetime_s = static_cast<uint32_t>(lifetime.value_or(0));
  spec.idle_timeout_s = static_cast<uint32_t>(idle.value_or(0));
  spec.ephemeral = ephemeral.value_or(false);
  spec.idempotency_key = key.value_or("");
  if (spec.idempotency_key.size() > 256) return fail(bad("idempotencyKey", "at most 256 bytes"));
  spec.from_pool = pool.value_or(true);
  return spec;
}

Task<Result<void>> reply(Context& context, const sandbox::Sandbox& sandbox,
                         http::ResponseWriter& writer, int status = 200) {
  return writer.send_json(json::serialize(sandbox_json(context, sandbox)), status);
}

Task<Result<void>> create(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, 1u << 20));
  ATOLL_CO_ASSIGN(sandbox::Spec spec, read_spec(context, document));
  ATOLL_CO_ASSIGN(auto sandbox, co_await context.manager.create(std::move(spec)));
  co_return co_await reply(context, *sandbox, writer, 201);
}

Task<Result<void>> list(Context& context, http::Request& request, http::ResponseWriter& writer) {
  auto wanted = request.query.all("status");
  ATOLL_CO_ASSIGN(uint64_t limit, number(request, "limit", UINT64_MAX));
  ATOLL_CO_ASSIGN(uint64_t offset, number(request, "offset", 0));
  json::array sandboxes;
  for (const sandbox::SandboxPtr& sandbox : context.manager.list()) {
    std::string_view status = to_string(sandbox->record.status);
    bool matches =
        wanted.empty() || std::find(wanted.begin(), wanted.end(), status) != wanted.end();
    if (!matches) continue;
    if (offset > 0) {
      offset--;
      continue;
    }
    if (sandboxes.size() >= limit) break;
    sandboxes.push_back(sandbox_json(context, *sandbox));
  }
  json::object body{{"sandboxes", std::move(sandboxes)}};
  co_return co_await writer.send_json(json::serialize(body));
}

Task<Result<void>> get(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  co_return co_await reply(context, *sandbox, writer);
}

Task<Result<void>> remove(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_TRY(co_await context.manager.remove(sandbox));
  co_return co_await writer.send_json(std::string(kSuccess));
}

Task<Result<void>> stop(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_TRY(co_await context.manager.stop(sandbox, "stopped by request"));
  co_return co_await reply(context, *sandbox, writer);
}

Task<Result<void>> resume(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_TRY(co_await context.manager.resume(sandbox));
  co_return co_await reply(context, *sandbox, writer);
}

Task<Result<void>> pause(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_TRY(co_await context.manager.set_paused(sandbox, true));
  co_return co_await reply(context, *sandbox, writer);
}

Task<Result<void>> update(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, 1u << 20));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  JsonObjectReader reader(*object);
  sandbox::Changes changes;
  Limits limits = sandbox->record.spec.limits;
  ATOLL_CO_TRY(read_resources(reader, limits));
  if (limits.disk_bytes != sandbox->record.spec.limits.disk_bytes) {
    co_return fail(Error(ErrorCode::NotSupported, "a disk limit cannot be changed")
                       .with_field("resources.diskGB"));
  }
  if (limits != sandbox->record.spec.limits) changes.limits = limits;
  ATOLL_CO_ASSIGN(auto idle, reader.optional_integer("idleTimeoutSeconds", 0, kMaxSeconds));
  ATOLL_CO_ASSIGN(auto lifetime, reader.optional_integer("maxLifetimeSeconds", 0, kMaxSeconds));
  if (idle) changes.idle_timeout_s = static_cast<uint32_t>(*idle);
  if (lifetime) changes.max_lifetime_s = static_cast<uint32_t>(*lifetime);
  if (reader.has("metadata")) {
    ATOLL_CO_ASSIGN(changes.metadata, read_metadata(reader));
  }
  ATOLL_CO_TRY(reader.finish());
  ATOLL_CO_TRY(co_await context.manager.update(sandbox, std::move(changes)));
  co_return co_await reply(context, *sandbox, writer);
}

Task<Result<void>> usage(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  auto handle = sandbox->handle;
  if (handle == nullptr) co_return fail(ErrorCode::InvalidState, "the sandbox is not running");
  ATOLL_CO_ASSIGN(Usage used, co_await handle->usage());
  json::object body{{"memoryBytes", used.memory_bytes},
                    {"memoryPeakBytes", used.memory_peak_bytes},
                    {"cpuMicroseconds", used.cpu_us},
                    {"processes", used.pids},
                    {"oomKills", used.oom_kills}};
  co_return co_await writer.send_json(json::serialize(body));
}

}  // namespace

void add_sandbox_routes(http::Router& router, Context& context) {
  router.add("POST", "/v1/sandboxes", guarded(context, create));
  router.add("GET", "/v1/sandboxes", guarded(context, list));
  router.add("GET", "/v1/sandboxes/{id}", guarded(context, get));
  router.add("PATCH", "/v1/sandboxes/{id}", guarded(context, update));
  router.add("DELETE", "/v1/sandboxes/{id}", guarded(context, remove));
  router.add("POST", "/v1/sandboxes/{id}/stop", guarded(context, stop));
  router.add("POST", "/v1/sandboxes/{id}/resume", guarded(context, resume));
  router.add("POST", "/v1/sandboxes/{id}/pause", guarded(context, pause));
  router.add("POST", "/v1/sandboxes/{id}/unpause", guarded(context, resume));
  router.add("GET", "/v1/sandboxes/{id}/usage", guarded(context, usage));
}

}  // namespace atl::api
