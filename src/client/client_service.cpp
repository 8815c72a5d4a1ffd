// Keys, secrets, tokens, events and usage.
#include <algorithm>
#include <boost/json.hpp>
#include <cmath>

#include "client/client_impl.h"
#include "client/decode.h"
#include "client/streams.h"
#include "http/target.h"

namespace atl {
namespace {

namespace json = boost::json;
using client::member;
using client::number_of;
using client::parse_answer;
using client::real_of;
using client::sandbox_target;
using client::text_of;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr std::chrono::milliseconds kShortestWait{1};
constexpr std::chrono::milliseconds kLongestWait{60'000};
// The server speaks every 15 s, so one that is silent for longer is not there.
constexpr std::chrono::seconds kLongestSilence{45};

json::object to_json(const KeyQuota& quota) {
  json::object object;
  auto put = [&](std::string_view name, uint64_t amount) {
    if (amount != 0) object[name] = static_cast<int64_t>(amount);
  };
  put("sandboxes", quota.sandboxes);
  if (quota.cpu_millis != 0) object["cpuCores"] = quota.cpu_millis / 1000.0;
  put("memoryMB", (quota.memory_bytes + kMiB - 1) / kMiB);
  put("diskGB", (quota.disk_bytes + kGiB - 1) / kGiB);
  return object;
}

std::string to_body(const CreateKeyRequest& request) {
  json::object body{{"name", request.name}};
  if (!request.tenant.empty()) body["tenant"] = request.tenant;
  if (!request.role.empty()) body["role"] = request.role;
  json::object quota = to_json(request.quota);
  if (!quota.empty()) body["quota"] = std::move(quota);
  if (request.rate_per_second != 0) {
    body["ratePerSecond"] = static_cast<int64_t>(request.rate_per_second);
  }
  if (request.lifetime) body["expiresInSeconds"] = static_cast<int64_t>(request.lifetime->count());
  return json::serialize(body);
}

KeyQuota to_quota(const json::value& value) {
  KeyQuota quota;
  quota.sandboxes = static_cast<uint32_t>(number_of(value, "sandboxes"));
  quota.cpu_millis = static_cast<uint32_t>(std::lround(real_of(value, "cpuCores") * 1000));
  quota.memory_bytes = static_cast<uint64_t>(real_of(value, "memoryMB") * kMiB);
  quota.disk_bytes = static_cast<uint64_t>(real_of(value, "diskGB") * kGiB);
  return quota;
}

KeyInfo to_key(const json::value& value) {
  KeyInfo key;
  key.id = text_of(value, "id");
  key.tenant = text_of(value, "tenant");
  key.name = text_of(value, "name");
  key.role = text_of(value, "role");
  key.quota = to_quota(member(value, "quota"));
  key.used = to_quota(member(value, "used"));
  key.rate_per_second = number_of(value, "ratePerSecond");
  key.created_at = text_of(value, "createdAt");
  key.expires_at = text_of(value, "expiresAt");
  key.json = json::serialize(value);
  return key;
}

SecretInfo to_secret(const json::value& value) {
  return {text_of(value, "name"), text_of(value, "createdAt"), text_of(value, "updatedAt"),
          json::serialize(value)};
}

Metered to_metered(const json::value& value) {
  return {real_of(value, "cpuSeconds"), real_of(value, "runningSeconds"),
          real_of(value, "memoryGBSeconds")};
}

KeyUsage to_key_usage(const json::value& value) {
  KeyUsage usage;
  usage.tenant = text_of(value, "tenant");
  usage.key_id = text_of(value, "keyId");
  usage.active_sandboxes = number_of(value, "activeSandboxes");
  usage.total_sandboxes = number_of(value, "totalSandboxes");
  usage.metered = to_metered(value);
  return usage;
}

std::string key_target(std::string_view id) { return "/v1/keys/" + http::percent_encode(id); }
std::string secret_target(std::string_view name) {
  return "/v1/secrets/" + http::percent_encode(name);
}

Result<Sandbox> sandbox_from(Result<std::string> answer) {
  if (!answer) return tl::unexpected(std::move(answer).error());
  ATOLL_ASSIGN(json::value value, parse_answer(*answer));
  return client::to_sandbox(value);
}

}  // namespace

// The server holds an answer back for minutes, not for ever, so a long wait is several.
Result<Sandbox> Client::wait_for(std::string_view sandbox, std::string_view status,
                                 std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  auto deadline = Clock::now() + timeout;
  bool endless = timeout.count() == 0;
  while (true) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    auto step = endless ? kLongestWait : std::clamp(left, kShortestWait, kLongestWait);
    std::string query = "/wait?status=" + http::percent_encode(status) +
                        "&timeoutMs=" + std::to_string(step.count());
    auto found =
        sandbox_from(impl_->call(impl_->patient, "GET", sandbox_target(sandbox, query), {}));
    bool again = !found && found.error().code() == ErrorCode::Timeout;
    if (!again || (!endless && Clock::now() >= deadline)) return found;
  }
}

Result<SandboxUsage> Client::usage(std::string_view sandbox) {
  ATOLL_ASSIGN(std::string answer,
               impl_->call(impl_->quick, "GET", sandbox_target(sandbox, "/usage"), {}));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  SandboxUsage usage;
  usage.metered = to_metered(value);
  if (!member(value, "memoryBytes").is_null()) usage.present = client::to_usage(value);
  usage.json = json::serialize(value);
  return usage;
}

Result<EventReader> Client::events(const EventsRequest& request) {
  std::string target =
      request.sandbox.empty() ? "/v1/events" : sandbox_target(request.sandbox, "/events");
  target.append(request.follow ? "?follow=true" : "?follow=false");
  http::Headers extra{{"Accept", "text/event-stream"}};
  if (!request.since.empty()) {
    if (!http::is_field_value(request.since)) {
      return fail(Error(ErrorCode::InvalidArgument, "an event id is a whole number")
                      .with_field("lastEventId"));
    }
    extra.set("Last-Event-ID", request.since);
  }
  ATOLL_ASSIGN(http::ResponseStream response, impl_->open(target, std::move(extra)));
  response.set_timeout(kLongestSilence);
  return EventReader(std::make_unique<EventReader::State>(std::move(response), request.since));
}

Result<Identity> Client::whoami() {
  ATOLL_ASSIGN(std::string answer, impl_->call(impl_->quick, "GET", "/v1/whoami", {}));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  Identity identity;
  identity.actor = text_of(value, "actor");
  identity.tenant = text_of(value, "tenant");
  identity.role = text_of(value, "role");
  identity.all_tenants = client::flag_of(value, "allTenants");
  identity.json = json::serialize(value);
  return identity;
}

Result<CreatedKey> Client::create_key(const CreateKeyRequest& request) {
  ATOLL_ASSIGN(std::string answer, impl_->call(impl_->quick, "POST", "/v1/keys", to_body(request)));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  return CreatedKey{to_key(value), text_of(value, "key")};
}

Result<std::vector<KeyInfo>> Client::keys() {
  ATOLL_ASSIGN(std::string answer, impl_->call(impl_->quick, "GET", "/v1/keys", {}));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  return client::list_of(member(value, "keys"), to_key);
}

Result<void> Client::remove_key(std::string_view id) {
  ATOLL_TRY(impl_->call(impl_->quick, "DELETE", key_target(id), {}));
  return {};
}

Result<SecretInfo> Client::set_secret(std::string_view name, std::string_view value) {
  std::string body = json::serialize(json::object{{"value", value}});
  ATOLL_ASSIGN(std::string answer, impl_->call(impl_->quick, "PUT", secret_target(name), body));
  ATOLL_ASSIGN(json::value info, parse_answer(answer));
  return to_secret(info);
}

Result<std::vector<SecretInfo>> Client::secrets() {
  ATOLL_ASSIGN(std::string answer, impl_->call(impl_->quick, "GET", "/v1/secrets", {}));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  return client::list_of(member(value, "secrets"), to_secret);
}

Result<void> Client::remove_secret(std::string_view name) {
  ATOLL_TRY(impl_->call(impl_->quick, "DELETE", secret_target(name), {}));
  return {};
}

Result<Token> Client::create_token(std::string_view sandbox, const TokenRequest& request) {
  json::object body{{"scope", request.scope}};
  if (!request.session.empty()) body["sessionId"] = request.session;
  if (request.lifetime) body["ttlMinutes"] = static_cast<int64_t>(request.lifetime->count());
  ATOLL_ASSIGN(
      std::string answer,
      impl_->call(impl_->quick, "POST", sandbox_target(sandbox, "/tokens"), json::serialize(body)));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  return Token{text_of(value, "token"), text_of(value, "scope"), text_of(value, "expiresAt"),
               json::serialize(value)};
}

Result<AccountUsage> Client::account_usage() {
  ATOLL_ASSIGN(std::string answer, impl_->call(impl_->quick, "GET", "/v1/usage", {}));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  AccountUsage usage;
  usage.keys = client::list_of(member(value, "keys"), to_key_usage);
  usage.active_sandboxes = number_of(value, "activeSandboxes");
  usage.total_sandboxes = number_of(value, "totalSandboxes");
  usage.metered = to_metered(value);
  usage.json = json::serialize(value);
  return usage;
}

}  // namespace atl
