#include "sandbox/record.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/base64url.h"
#include "egress/policy.h"
#include "egress/policy_json.h"

namespace atl::sandbox {

namespace json = boost::json;

std::string_view to_string(Status status) {
  switch (status) {
    case Status::Provisioning:
      return "provisioning";
    case Status::Running:
      return "running";
    case Status::Paused:
      return "paused";
    case Status::Stopped:
      return "stopped";
    case Status::Failed:
      return "failed";
  }
  return "failed";
}

std::optional<Status> parse_status(std::string_view text) {
  for (Status status :
       {Status::Provisioning, Status::Running, Status::Paused, Status::Stopped, Status::Failed}) {
    if (to_string(status) == text) return status;
  }
  return std::nullopt;
}

static constexpr std::string_view kCauses[] = {
    "",           "request",       "idle",          "lifetime",   "stopped-too-long",
    "server-end", "server-absent", "out-of-memory", "agent-died", "provisioning"};

std::string_view to_string(EndCause cause) { return kCauses[static_cast<size_t>(cause)]; }

namespace {

json::object to_object(const std::map<std::string, std::string>& map) {
  json::object object;
  for (const auto& [key, value] : map) object[key] = value;
  return object;
}

std::map<std::string, std::string> to_map(const json::value& value) {
  std::map<std::string, std::string> map;
  for (const auto& item : value.as_object()) {
    map[std::string(item.key())] = std::string(item.value().as_string());
  }
  return map;
}

json::array to_array(const std::vector<std::string>& list) {
  return json::array(list.begin(), list.end());
}

std::vector<std::string> to_list(const json::value& value) {
  std::vector<std::string> list;
  for (const json::value& item : value.as_array()) list.emplace_back(item.as_string());
  return list;
}

EndCause cause_from(std::string_view text) {
  for (size_t i = 0; i < std::size(kCauses); i++) {
    if (kCauses[i] == text) return static_cast<EndCause>(i);
  }
  return EndCause::None;
}

std::string text(const json::object& object, const char* key) {
  return std::string(object.at(key).as_string());
}

template <class Number>
Number number(const json::object& object, const char* key) {
  return object.at(key).to_number<Number>();
}

json::object git_object(const GitSource& git) {
  return {
      {"url", git.url}, {"ref", git.ref}, {"depth", git.depth}, {"sparse", to_array(git.sparse)}};
}

GitSource git_from(const json::object& object) {
  return {.url = text(object, "url"),
          .ref = text(object, "ref"),
          .depth = number<uint32_t>(object, "depth"),
          .sparse = to_list(object.at("sparse"))};
}

// Fields that older records do not have.
void decode_later_fields(const json::object& object, Record& record) {
  if (object.contains("atLifetime")) {
    record.spec.workdir = text(object, "workdir");
    auto what = std::min<uint32_t>(number<uint32_t>(object, "atLifetime"),
                                   static_cast<uint32_t>(AtLifetime::Pause));
    record.spec.at_lifetime = static_cast<AtLifetime>(what);
  }
  if (object.contains("snapshot")) {
    record.snapshot = text(object, "snapshot");
    record.untouched = object.at("untouched").as_bool();
    record.spec.history = object.at("history").as_bool();
  }
  if (!object.contains("tenant")) return;
  record.owner = {.tenant = text(object, "tenant"), .key_id = text(object, "keyId")};
  record.generation = text(object, "generation");
  record.spec.delete_after_stopped_s = number<uint32_t>(object, "deleteAfterStoppedSeconds");
  record.spec.auto_resume = object.at("autoResume").as_bool();
  record.spec.secrets = to_list(object.at("secrets"));
  record.spec.all_secrets = object.at("allSecrets").as_bool();
  record.spec.git = git_from(object.at("git").as_object());
  record.cause = cause_from(object.at("cause").as_string());
  record.ended_at_ms = number<int64_t>(object, "endedAtMs");
  record.metered = {.cpu_us = number<uint64_t>(object, "cpuUs"),
                    .running_ms = number<uint64_t>(object, "runningMs"),
                    .memory_mb_ms = number<uint64_t>(object, "memoryMbMs")};
  if (!object.contains("bootId")) return;
  record.since = {.boot = text(object, "bootId"), .ms = number<int64_t>(object, "sinceBootMs")};
}

Result<void> encode_network(const Record& record, const PolicySeal& seal, json::object& object) {
  const NetworkPolicy& policy = record.spec.network;
  if (policy == NetworkPolicy{}) return {};
  json::value whole = egress::to_json(policy, egress::Values::Whole);
  if (!seal.seal || !egress::has_rules(policy)) {
    object["network"] = std::move(whole);
    return {};
  }
  ATOLL_ASSIGN(std::string sealed, seal.seal(json::serialize(whole), record));
  object["sealedNetwork"] = base64url_encode(sealed);
  return {};
}

Result<void> decode_network(const json::object& object, const PolicySeal& seal, Record& record) {
  if (object.contains("network")) {
    ATOLL_ASSIGN(record.spec.network, egress::policy_from(object.at("network"), "network"));
  }
  if (!object.contains("sealedNetwork")) return {};
  auto sealed = base64url_decode(std::string_view(object.at("sealedNetwork").as_string()));
  if (!sealed || !seal.open) return fail(ErrorCode::Internal, "a policy that cannot be opened");
  ATOLL_ASSIGN(std::string whole, seal.open(*sealed, record));
  ATOLL_ASSIGN(record.spec.network, egress::policy_from(json::parse(whole), "network"));
  return {};
}

}  // namespace

Result<std::string> encode_record(const Record& record, const PolicySeal& seal) {
  const Spec& spec = record.spec;
  json::object object{
      {"id", record.id},
      {"tenant", record.owner.tenant},
      {"keyId", record.owner.key_id},
      {"generation", record.generation},
      {"name", spec.name},
      {"template", spec.template_name},
      {"templateKey", record.template_key},
      {"env", to_object(spec.env)},
      {"memoryBytes", spec.limits.memory_bytes},
      {"cpuMillis", spec.limits.cpu_millis},
      {"pids", spec.limits.pids},
      {"diskBytes", spec.limits.disk_bytes},
      {"strict", spec.profile == Profile::Strict},
      {"user", spec.user},
      {"workdir", spec.workdir},
      {"metadata", to_object(spec.metadata)},
      {"idempotencyKey", spec.idempotency_key},
      {"maxLifetimeSeconds", spec.max_lifetime_s},
      {"atLifetime", static_cast<uint32_t>(spec.at_lifetime)},
      {"idleTimeoutSeconds", spec.idle_timeout_s},
      {"deleteAfterStoppedSeconds", spec.delete_after_stopped_s},
      {"autoResume", spec.auto_resume},
      {"ephemeral", spec.ephemeral},
      {"secrets", to_array(spec.secrets)},
      {"allSecrets", spec.all_secrets},
      {"git", git_object(spec.git)},
      {"status", to_string(record.status)},
      {"cause", to_string(record.cause)},
      {"reason", record.reason},
      {"backendState", to_object(record.backend_state)},
      {"memory", record.memory},
      {"memoryImageBytes", record.memory_bytes},
      {"snapshot", record.snapshot},
      {"untouched", record.untouched},
      {"history", spec.history},
      {"createdAtMs", record.created_at_ms},
      {"startedAtMs", record.started_at_ms},
      {"endedAtMs", record.ended_at_ms},
      {"bootId", record.since.boot},
      {"sinceBootMs", record.since.ms},
      {"cpuUs", record.metered.cpu_us},
      {"runningMs", record.metered.running_ms},
      {"memoryMbMs", record.metered.memory_mb_ms},
  };
  ATOLL_TRY(encode_network(record, seal, object));
  if (spec.ingress != Ingress{}) {
    object["ingress"] = json::object{{"public", spec.ingress.public_ports},
                                     {"token", spec.ingress.has_traffic_token},
                                     {"host", spec.ingress.host}};
  }
  return json::serialize(object);
}

Result<Record> decode_record(std::string_view bytes, const PolicySeal& seal) {
  // Written by ourselves: a surprise here is damage, told as one error.
  try {
    json::value parsed = json::parse(json::string_view(bytes.data(), bytes.size()));
    const json::object& object = parsed.as_object();
    Record record;
    record.id = text(object, "id");
    record.spec.name = text(object, "name");
    record.spec.template_name = text(object, "template");
    record.spec.env = to_map(object.at("env"));
    record.spec.limits.memory_bytes = number<uint64_t>(object, "memoryBytes");
    record.spec.limits.cpu_millis = number<uint32_t>(object, "cpuMillis");
    record.spec.limits.pids = number<uint32_t>(object, "pids");
    record.spec.limits.disk_bytes = number<uint64_t>(object, "diskBytes");
    record.spec.profile = object.at("strict").as_bool() ? Profile::Strict : Profile::Dev;
    record.spec.user = text(object, "user");
    record.spec.metadata = to_map(object.at("metadata"));
    record.spec.idempotency_key = text(object, "idempotencyKey");
    record.spec.max_lifetime_s = number<uint32_t>(object, "maxLifetimeSeconds");
    record.spec.idle_timeout_s = number<uint32_t>(object, "idleTimeoutSeconds");
    record.spec.ephemeral = object.at("ephemeral").as_bool();
    record.status = parse_status(object.at("status").as_string()).value_or(Status::Failed);
    record.reason = text(object, "reason");
    record.backend_state = to_map(object.at("backendState"));
    record.created_at_ms = number<int64_t>(object, "createdAtMs");
    record.started_at_ms = number<int64_t>(object, "startedAtMs");
    decode_later_fields(object, record);
    if (object.contains("memory")) {
      record.memory = text(object, "memory");
      record.memory_bytes = number<uint64_t>(object, "memoryImageBytes");
    }
    ATOLL_TRY(decode_network(object, seal, record));
    if (const json::value* ingress = object.if_contains("ingress")) {
      const json::object& fields = ingress->as_object();
      record.spec.ingress = {.public_ports = fields.at("public").as_bool(),
                             .has_traffic_token = fields.at("token").as_bool(),
                             .host = text(fields, "host")};
    }
    if (object.contains("templateKey")) {
      record.template_key = text(object, "templateKey");
    }
    return record;
  } catch (const std::exception& error) {
    return fail(ErrorCode::Internal, std::string("damaged sandbox record: ") + error.what());
  }
}

}  // namespace atl::sandbox
