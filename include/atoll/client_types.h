// What atl::Client takes and returns.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "atoll/client_account_types.h"
#include "atoll/client_runtime_types.h"
#include "atoll/client_state_types.h"
#include "atoll/network_log.h"
#include "atoll/network_policy.h"
#include "atoll/types.h"

namespace atl {

struct ClientOptions {
  std::string url;  // "unix:/path", "http://host:port" or "https://host:port"
  std::string api_key;
  std::string tenant;  // for whom an administrator acts; empty: for all
  std::chrono::milliseconds connect_timeout{10'000};
  // The longest silence of a server that has been asked something; commands may take for ever.
  std::chrono::milliseconds io_timeout{60'000};

  // ATOLL_URL, else the socket ATOLL_SOCKET, else /run/atoll/atoll.sock; ATOLL_API_KEY;
  // ATOLL_TENANT.
  static ClientOptions from_environment();
};

// ---- sandboxes

struct SandboxTimings {
  std::string source;  // "pool", "cold", "reattached"
  uint64_t total_us = 0;
  uint64_t overlay_us = 0;
  uint64_t attach_us = 0;
};

struct Isolation {
  std::string driver;
  std::string boundary;
  std::vector<std::string> degraded;
};

struct Sandbox {
  std::string id;
  std::string name;
  std::string status;  // "running", "paused", "stopped", "failed"
  std::string reason;  // why it ended
  std::string cause;   // the same in one word: "request", "idle", "lifetime"
  std::string tenant;
  std::string template_name;
  std::string profile;
  std::string user;
  std::vector<std::string> env_names;
  Limits limits;
  std::map<std::string, std::string> metadata;
  std::string created_at;  // ISO 8601, as all times here; empty: none
  std::string started_at;
  std::string last_activity_at;
  std::string expires_at;
  Isolation isolation;
  std::string runtime_url;
  SandboxTimings timings;
  std::string json;  // as the server sent it
};

// What a new sandbox finds in /workspace.
struct GitSource {
  std::string url = {};
  std::string ref = {};    // empty: the repository's default branch
  uint32_t depth = 0;      // 0: all of the history
  std::string token = {};  // of a private repository; forgotten after the clone
};

struct CreateRequest {
  std::string name = {};
  std::string template_name = {};  // empty: the server's default, in every field
  std::string from_snapshot = {};  // its files and, where nothing is said, its settings
  std::map<std::string, std::string> env = {};
  Limits limits = {};
  std::string profile = {};  // "dev" or "strict"
  std::string user = {};
  std::optional<std::chrono::seconds> max_lifetime = {};  // 0: never ends of itself
  std::optional<std::chrono::seconds> idle_timeout = {};
  std::optional<std::chrono::seconds> delete_after_stopped = {};  // 0: never
  bool auto_resume = true;  // the next use starts it again after an idle stop
  bool ephemeral = false;   // its files need not survive a crash of the host
  bool history = false;     // keep the state before every command
  bool allow_pool = true;
  std::vector<std::string> secrets = {};  // names; they become variables of its commands
  GitSource git = {};
  std::map<std::string, std::string> metadata = {};
  std::optional<NetworkPolicy> network = {};  // none: it reaches nothing
  std::string idempotency_key = {};           // the same key gives the same sandbox
};

struct ListRequest {
  std::string status;  // empty: all
  uint32_t limit = 0;  // 0: the server's
  uint32_t offset = 0;
};

// Only what is set is changed; of the limits, only what is not 0.
struct UpdateRequest {
  Limits limits = {};
  std::optional<std::chrono::seconds> max_lifetime = {};
  std::optional<std::chrono::seconds> idle_timeout = {};
  std::optional<std::chrono::seconds> delete_after_stopped = {};
  std::optional<std::map<std::string, std::string>> metadata = {};
};

struct TemplateInfo {
  std::string name;
  std::string created_at;
  std::string digest;
  uint32_t version = 1;
  uint64_t layers = 0;
  uint64_t bytes = 0;   // 0: not known
  uint64_t in_use = 0;  // sandboxes and snapshots that are made from this version
  std::vector<std::string> tags;
};

// A template to build: a base, what is put there and what is run there. Or, with `snapshot`, one
// that starts from it.
struct TemplateRequest {
  std::string name;
  std::string base = {};  // empty: base
  struct Seed {
    std::string from;  // a file or directory here
    std::string to;    // a path in the sandbox
  };
  std::vector<Seed> seeds = {};
  std::string bootstrap = {};  // a script for /bin/sh, run once as root
  std::optional<std::chrono::seconds> timeout = {};
  std::string snapshot = {};
  TemplateSettings settings = {};
};

struct MadeTemplate {
  TemplateInfo info;
  bool reused = false;  // it had been made of the same before
  std::string json;     // as the server sent it
};

struct SystemInfo {
  std::string version;
  std::string backend;
  std::vector<std::string> degraded;
  uint64_t sandboxes = 0;
  std::map<std::string, uint64_t> pool;  // ready sandboxes by template
  std::string json;                      // as the server sent it
};

// ---- ports and network

// A link to a port of a sandbox.
struct PreviewRequest {
  uint16_t port = 0;
  std::string access = {};  // "private", "public" or "signed"; empty: private
  std::optional<std::chrono::seconds> lifetime = {};  // none: never ends, a signed one in an hour
};

struct PreviewInfo {
  std::string id;
  std::string sandbox;
  uint16_t port = 0;
  std::string access;
  std::string status;  // "ready", or "disabled": it has expired
  std::string url;     // what to open; empty where the server has no TCP port
  std::string expires_at;
  std::string json;  // as the server sent it
};

struct NetworkLogRequest {
  uint64_t after = 0;            // only entries with a higher number
  std::chrono::seconds wait{0};  // for the first of them
};

struct NetworkExplanation {
  bool allowed = false;
  std::string rule;
  std::string reason;
  std::string treatment;
  uint64_t status_code = 0;  // where a rule answers itself
  std::string forward_url;   // where a rule sends it elsewhere
  std::string json;          // as the server sent it
};

// ---- events

struct SandboxEvent {
  std::string id;    // what EventsRequest::since takes
  std::string type;  // "sandbox.stopped"
  std::string at;
  std::string sandbox_id;
  std::string sandbox_name;
  std::string reason;  // or what the event has to say instead
  std::string json;    // the event's data, as the server sent it
};

struct EventsRequest {
  std::string sandbox = {};  // empty: all that the caller may see
  bool follow = false;       // else those that are known, and the end
  // Only those after this one. None: all that are known or, of all sandboxes and with `follow`,
  // those from now on.
  std::string since = {};
};

}  // namespace atl
