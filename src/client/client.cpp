#include "atoll/client.h"

#include <stdlib.h>

#include <boost/json.hpp>

#include "client/client_impl.h"
#include "client/decode.h"
#include "egress/policy_json.h"
#include "http/status.h"
#include "http/target.h"

namespace atl {
namespace {

namespace json = boost::json;
using client::parse_answer;
using client::sandbox_target;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr double kGiB = 1 << 30;

std::string environment(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

json::object to_json(const std::map<std::string, std::string>& texts) {
  json::object object;
  for (const auto& [key, value] : texts) object[key] = value;
  return object;
}

// Whole numbers go as integers, which is what a strict server expects of them.
json::value number(double value) {
  auto whole = static_cast<int64_t>(value);
  if (static_cast<double>(whole) == value) return whole;
  return value;
}

json::object to_json(const Limits& limits) {
  json::object object;
  if (limits.cpu_millis != 0) object["cpuCores"] = number(limits.cpu_millis / 1000.0);
  if (limits.memory_bytes != 0) {
    object["memoryMB"] = static_cast<int64_t>((limits.memory_bytes + kMiB - 1) / kMiB);
  }
  if (limits.disk_bytes != 0) {
    object["diskGB"] = number(static_cast<double>(limits.disk_bytes) / kGiB);
  }
  if (limits.pids != 0) object["pids"] = static_cast<int64_t>(limits.pids);
  return object;
}

void put_text(json::object& object, std::string_view name, const std::string& text) {
  if (!text.empty()) object[name] = text;
}

void put_seconds(json::object& object, std::string_view name,
                 const std::optional<std::chrono::seconds>& time) {
  if (time) object[name] = static_cast<int64_t>(time->count());
}

json::object to_json(const GitSource& git) {
  json::object object{{"url", git.url}};
  put_text(object, "ref", git.ref);
  if (git.depth != 0) object["depth"] = static_cast<int64_t>(git.depth);
  if (!git.token.empty()) object["auth"] = json::object{{"token", git.token}};
  return object;
}

std::string to_body(const CreateRequest& request) {
  json::object body;
  put_text(body, "name", request.name);
  put_text(body, "environment", request.template_name);
  put_text(body, "fromSnapshot", request.from_snapshot);
  put_text(body, "profile", request.profile);
  put_text(body, "user", request.user);
  put_text(body, "idempotencyKey", request.idempotency_key);
  if (!request.env.empty()) body["env"] = to_json(request.env);
  if (!request.metadata.empty()) body["metadata"] = to_json(request.metadata);
  json::object resources = to_json(request.limits);
  if (!resources.empty()) body["resources"] = std::move(resources);
  put_seconds(body, "maxLifetimeSeconds", request.max_lifetime);
  put_seconds(body, "idleTimeoutSeconds", request.idle_timeout);
  put_seconds(body, "deleteAfterStoppedSeconds", request.delete_after_stopped);
  if (!request.auto_resume) body["autoResume"] = false;
  if (!request.secrets.empty()) {
    body["secrets"] = json::array(request.secrets.begin(), request.secrets.end());
  }
  if (!request.git.url.empty()) body["git"] = to_json(request.git);
  if (request.ephemeral) body["ephemeral"] = true;
  if (request.history) body["history"] = true;
  if (!request.allow_pool) body["pool"] = false;
  if (request.network) body["network"] = egress::to_json(*request.network, egress::Values::Whole);
  return json::serialize(body);
}

std::string to_body(const UpdateRequest& request) {
  json::object body;
  json::object resources = to_json(request.limits);
  if (!resources.empty()) body["resources"] = std::move(resources);
  put_seconds(body, "maxLifetimeSeconds", request.max_lifetime);
  put_seconds(body, "idleTimeoutSeconds", request.idle_timeout);
  put_seconds(body, "deleteAfterStoppedSeconds", request.delete_after_stopped);
  if (request.metadata) body["metadata"] = to_json(*request.metadata);
  return json::serialize(body);
}

Result<Sandbox> sandbox_from(Result<std::string> answer) {
  if (!answer) return tl::unexpected(std::move(answer).error());
  ATOLL_ASSIGN(json::value value, parse_answer(*answer));
  return client::to_sandbox(value);
}

}  // namespace

namespace client {

json::object resources_body(const Limits& limits) { return to_json(limits); }

std::string sandbox_target(std::string_view sandbox, std::string_view rest) {
  return "/v1/sandboxes/" + http::percent_encode(sandbox) + std::string(rest);
}

std::string runtime_target(std::string_view sandbox, std::string_view rest) {
  return sandbox_target(sandbox, "/runtime") + std::string(rest);
}

std::string absolute_path(std::string_view path) {
  if (path.starts_with('/')) return std::string(path);
  return path.empty() ? "/workspace" : "/workspace/" + std::string(path);
}

std::string file_target(std::string_view sandbox, std::string_view verb, std::string_view path) {
  return runtime_target(sandbox, verb) + http::percent_encode_path(absolute_path(path));
}

}  // namespace client

ClientOptions ClientOptions::from_environment() {
  ClientOptions options;
  options.url = environment("ATOLL_URL");
  if (options.url.empty()) {
    std::string socket = environment("ATOLL_SOCKET");
    std::string run = environment("ATOLL_RUN_DIR");  // the server's setting
    if (socket.empty()) socket = (run.empty() ? "/run/atoll" : run) + "/atoll.sock";
    options.url = "unix:" + socket;
  }
  options.api_key = environment("ATOLL_API_KEY");
  options.tenant = environment("ATOLL_TENANT");
  return options;
}

Result<std::string> Client::Impl::finish(Result<http::ResponseStream> response) {
  if (!response) return tl::unexpected(std::move(response).error());
  ATOLL_ASSIGN(std::string body, response->read_all());
  if (!response->ok()) return fail(http::error_from_response(response->status(), body));
  return body;
}

Result<std::string> Client::Impl::call(http::Client& over, std::string_view method,
                                       std::string_view target, std::string_view json_body) {
  if (json_body.empty()) return finish(over.open(method, target, headers));
  http::Headers with_type = headers;
  with_type.set("Content-Type", "application/json");
  return finish(over.open(method, target, with_type, json_body));
}

Result<http::ResponseStream> Client::Impl::open(std::string_view target, http::Headers extra) {
  http::Headers all = headers;
  for (const http::Field& field : extra) all.set(field.name, field.value);
  return open("GET", target, all);
}

Result<http::ResponseStream> Client::Impl::open(std::string_view method, std::string_view target,
                                                const http::Headers& all, std::string_view body) {
  ATOLL_ASSIGN(http::ResponseStream response, patient.open(method, target, all, body));
  if (response.ok()) return response;
  ATOLL_ASSIGN(std::string said, response.read_all());
  return fail(http::error_from_response(response.status(), said));
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

Result<Client> Client::connect(ClientOptions options) {
  http::ClientOptions quick_options;
  quick_options.connect_timeout = options.connect_timeout;
  quick_options.io_timeout = options.io_timeout;
  http::ClientOptions patient_options = quick_options;
  patient_options.io_timeout = std::chrono::milliseconds(0);
  if (!http::is_field_value(options.api_key)) {
    return fail(ErrorCode::InvalidArgument, "the API key holds characters that no key has");
  }
  if (!http::is_field_value(options.tenant)) {
    return fail(ErrorCode::InvalidArgument, "the tenant's name holds characters that none has");
  }
  ATOLL_ASSIGN(http::Client quick, http::Client::create(options.url, quick_options));
  ATOLL_ASSIGN(http::Client patient, http::Client::create(options.url, patient_options));
  auto impl = std::make_unique<Impl>(std::move(options), std::move(quick), std::move(patient));
  if (!impl->options.api_key.empty()) {
    impl->headers.set("Authorization", "Bearer " + impl->options.api_key);
  }
  if (!impl->options.tenant.empty()) impl->headers.set("Atoll-Tenant", impl->options.tenant);
  return Client(std::move(impl));
}

const std::string& Client::url() const { return impl_->options.url; }

Result<std::string> Client::call(std::string_view method, std::string_view target,
                                 std::string_view json_body) {
  return impl_->call(impl_->patient, method, target, json_body);
}

Result<Sandbox> Client::create(const CreateRequest& request) {
  return sandbox_from(impl_->call(impl_->quick, "POST", "/v1/sandboxes", to_body(request)));
}

Result<std::vector<Sandbox>> Client::list(const ListRequest& request) {
  std::string target = "/v1/sandboxes";
  char separator = '?';
  auto add = [&](std::string_view name, const std::string& value) {
    target.append(1, separator).append(name).append("=").append(http::percent_encode(value));
    separator = '&';
  };
  if (!request.status.empty()) add("status", request.status);
  if (request.limit != 0) add("limit", std::to_string(request.limit));
  if (request.offset != 0) add("offset", std::to_string(request.offset));
  ATOLL_ASSIGN(std::string answer, impl_->call(impl_->quick, "GET", target, {}));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  return client::list_of(client::member(value, "sandboxes"), client::to_sandbox);
}

Result<Sandbox> Client::get(std::string_view sandbox) {
  return sandbox_from(impl_->call(impl_->quick, "GET", sandbox_target(sandbox), {}));
}

Result<void> Client::remove(std::string_view sandbox) {
  ATOLL_TRY(impl_->call(impl_->quick, "DELETE", sandbox_target(sandbox), {}));
  return {};
}

Result<Sandbox> Client::stop(std::string_view sandbox) {
  return sandbox_from(impl_->call(impl_->quick, "POST", sandbox_target(sandbox, "/stop"), {}));
}
Result<Sandbox> Client::resume(std::string_view sandbox) {
  return sandbox_from(impl_->call(impl_->quick, "POST", sandbox_target(sandbox, "/resume"), {}));
}
Result<Sandbox> Client::pause(std::string_view sandbox) {
  return sandbox_from(impl_->call(impl_->quick, "POST", sandbox_target(sandbox, "/pause"), {}));
}
Result<Sandbox> Client::pause_to_disk(std::string_view sandbox) {
  return sandbox_from(
      impl_->call(impl_->patient, "POST", sandbox_target(sandbox, "/pause"), R"({"disk":true})"));
}
Result<Sandbox> Client::unpause(std::string_view sandbox) {
  return sandbox_from(impl_->call(impl_->quick, "POST", sandbox_target(sandbox, "/unpause"), {}));
}

Result<Sandbox> Client::update(std::string_view sandbox, const UpdateRequest& request) {
  return sandbox_from(
      impl_->call(impl_->quick, "PATCH", sandbox_target(sandbox), to_body(request)));
}

Result<StorageInfo> Client::storage(uint64_t grow_to) {
  std::string body;
  if (grow_to != 0) body = json::serialize(json::object{{"sizeBytes", grow_to}});
  ATOLL_ASSIGN(std::string answer, impl_->call(impl_->quick, grow_to != 0 ? "PATCH" : "GET",
                                               "/v1/system/storage", body));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  return StorageInfo{.bytes = client::number_of(value, "sizeBytes"),
                     .free_bytes = client::number_of(value, "freeBytes"),
                     .host_free_bytes = client::number_of(value, "hostFreeBytes"),
                     .growable = client::flag_of(value, "growable"),
                     .lacking = client::text_of(value, "lacking")};
}

Result<SystemInfo> Client::system() {
  ATOLL_ASSIGN(std::string answer, impl_->call(impl_->quick, "GET", "/v1/system", {}));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  return client::to_system(value);
}

Result<MemorySupport> Client::memory_support() {
  ATOLL_ASSIGN(std::string answer, call("GET", "/v1/system/criu-status"));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  return MemorySupport{.available = client::flag_of(value, "available"),
                       .version = client::text_of(value, "criuVersion"),
                       .reason = client::text_of(value, "reason")};
}

Result<void> Client::health() {
  ATOLL_TRY(impl_->call(impl_->quick, "GET", "/health", {}));
  return {};
}

}  // namespace atl
