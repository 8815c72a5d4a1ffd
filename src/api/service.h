// Everything the routes work with, for as long as the server runs.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "account/keys.h"
#include "account/secrets.h"
#include "account/tokens.h"
#include "auth/audit_log.h"
#include "auth/rate_limit.h"
#include "base/metrics.h"
#include "sandbox/manager.h"

namespace atl::code {
class Interpreter;
class Replays;
}  // namespace atl::code

namespace atl::api {

struct ServiceSettings {
  std::string version;
  std::string base_url;        // what clients reach the TCP port by; empty without one
  std::string allowed_origin;  // whose pages may open WebSockets, beside our own
  std::string preview_domain;  // below which sandboxes' ports have their names
  std::string templates_dir;
  uint32_t rate_per_s = 0;  // of a key that has no rate of its own; 0: none
  bool public_metrics = false;
  uint32_t max_lifetime_s = 0;  // where a request says nothing
  uint32_t idle_timeout_s = 0;
  uint32_t delete_after_stopped_s = 0;
};

struct Service {
  sandbox::Manager& manager;
  account::Keys& keys;
  account::Secrets& secrets;
  account::Tokens& tokens;
  auth::AuditLog* audit = nullptr;  // none where it is switched off
  ServiceSettings settings;
  MetricsRegistry& metrics;
  std::function<Task<Result<UniqueFd>>()> make_backup;
  auth::RateLimiter limiter;
  std::shared_ptr<code::Interpreter> code = {};
  std::shared_ptr<code::Replays> replays = {};  // of its answers
};

}  // namespace atl::api
