#include "sandbox/record.h"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace atl::sandbox {

namespace json = boost::json;

std::string_view to_string(Status status) {
  switch (status) {
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

std::string text(const json::object& object, const char* key) {
  return std::string(object.at(key).as_string());
}

template <class Number>
Number number(const json::object& object, const char* key) {
  return object.at(key).to_number<Number>();
}

Status status_from(std::string_view text) {
  for (Status status : {Status::Running, Status::Paused, Status::Stopped}) {
    if (to_string(status) == text) return status;
  }
  return Status::Failed;
}

}  // namespace

std::string encode_record(const Record& record) {
  const Spec& spec = record.spec;
  json::object object{
      {"id", record.id},
      {"name", spec.name},
      {"template", spec.template_name},
      {"env", to_object(spec.env)},
      {"memoryBytes", spec.limits.memory_bytes},
      {"cpuMillis", spec.limits.cpu_millis},
      {"pids", spec.limits.pids},
      {"diskBytes", spec.limits.disk_bytes},
      {"strict", spec.profile == Profile::Strict},
      {"user", spec.user},
      {"metadata", to_object(spec.metadata)},
      {"idempotencyKey", spec.idempotency_key},
      {"maxLifetimeSeconds", spec.max_lifetime_s},
      {"idleTimeoutSeconds", spec.idle_timeout_s},
      {"ephemeral", spec.ephemeral},
      {"status", to_string(record.status)},
      {"reason", record.reason},
      {"backendState", to_object(record.backend_state)},
      {"createdAtMs", record.created_at_ms},
      {"startedAtMs", record.started_at_ms},
  };
  return json::serialize(object);
}

Result<Record> decode_record(std::string_view bytes) {
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
    record.status = status_from(object.at("status").as_string());
    record.reason = text(object, "reason");
    record.backend_state = to_map(object.at("backendState"));
    record.created_at_ms = number<int64_t>(object, "createdAtMs");
    record.started_at_ms = number<int64_t>(object, "startedAtMs");
    return record;
  } catch (const std::exception& error) {
    return fail(ErrorCode::Internal, std::string("damaged sandbox record: ") + error.what());
  }
}

}  // namespace atl::sandbox
