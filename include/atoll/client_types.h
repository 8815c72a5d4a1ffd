// What atl::Client takes and returns.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

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

// ---- keys, secrets, tokens

// Who the server takes the caller for.
struct Identity {
  std::string actor;  // "uid:0", "key:..."
  std::string tenant;
  std::string role;          // "admin", "member", "read-only"
  bool all_tenants = false;  // sees what belongs to any
  std::string json;          // as the server sent it
};

// Together, of all sandboxes that a key has made and that are not deleted. 0: no limit.
struct KeyQuota {
  uint32_t sandboxes = 0;
  uint32_t cpu_millis = 0;
  uint64_t memory_bytes = 0;  // goes as whole MiB
  uint64_t disk_bytes = 0;    // goes as whole GiB
};

struct KeyInfo {
  std::string id;
  std::string tenant;
  std::string name;
  std::string role;
  KeyQuota quota;
  KeyQuota used;
  uint64_t rate_per_second = 0;  // 0: no limit
  std::string created_at;
  std::string expires_at;  // empty: never
  std::string json;        // as the server sent it
};

struct CreateKeyRequest {
  std::string name = {};
  std::string tenant = {};  // empty: the caller's
  std::string role = {};    // empty: "member"
  KeyQuota quota = {};
  uint32_t rate_per_second = 0;
  std::optional<std::chrono::seconds> lifetime = {};
};

struct CreatedKey {
  KeyInfo info;      // its `json` has the key too
  std::string text;  // the key itself, which the server does not know any more
};

struct SnapshotRequest {
  std::string message = {};
  std::vector<std::string> tags = {};
  std::optional<std::chrono::seconds> keep = {};  // none: until it is removed
};

struct SnapshotInfo {
  std::string id;
  std::string sandbox;
  std::string sandbox_name;
  std::string parent;
  std::string message;
  std::vector<std::string> tags;
  std::string created_at;
  uint64_t bytes = 0;
  uint64_t frozen_us = 0;
  uint64_t total_us = 0;
  std::string json;  // as the server sent it
};

// What to keep; at least one of the first two says so.
struct PruneRequest {
  std::string sandbox = {};  // empty: of all
  std::optional<uint32_t> newest = {};
  std::optional<std::chrono::seconds> younger_than = {};
  bool dry_run = false;
};

// A snapshot with the processes of that moment.
struct CheckpointInfo {
  std::string id;
  std::string sandbox;
  std::string sandbox_name;
  std::string message;
  std::vector<std::string> tags;
  std::string created_at;
  uint64_t bytes = 0;      // of the processes
  uint64_t frozen_us = 0;  // for how long they stood still
  uint64_t total_us = 0;
  std::string json;  // as the server sent it
};

struct HistoryPoint {
  std::string snapshot;
  uint32_t number = 0;
  std::string command;  // what ran next
  std::string created_at;
  std::string json;  // as the server sent it
};

struct FileDifference {
  std::string path;
  std::string kind;  // "added", "changed" or "removed"
  std::string type;  // "file", "directory", "symlink" or "other"
  uint64_t size_before = 0;
  uint64_t size_after = 0;
  std::string text;  // a unified diff, where there is one
};

struct DiffAnswer {
  std::vector<FileDifference> changes;  // by path
  bool complete = true;
  std::string json;  // as the server sent it
};

struct ForkRequest {
  unsigned count = 1;
  std::string name = {};  // of several copies: NAME-1, NAME-2, ...
  std::map<std::string, std::string> env = {};
  bool memory = false;          // with what runs in it
  std::string checkpoint = {};  // as it was then; empty: as it is now
};

struct SecretInfo {
  std::string name;
  std::string created_at;
  std::string updated_at;
  std::string json;  // as the server sent it
};

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

struct TokenRequest {
  std::string scope = {};    // "read-only", "project" or "session"
  std::string session = {};  // of the scope "session": the terminal's id
  std::optional<std::chrono::minutes> lifetime = {};
};

struct Token {
  std::string text;
  std::string scope;
  std::string expires_at;
  std::string json;  // as the server sent it
};

// ---- events and usage

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

// What has been used so far.
struct Metered {
  double cpu_seconds = 0;
  double running_seconds = 0;
  double memory_gb_seconds = 0;  // of the limit, while it ran
};

struct SandboxUsage {
  Metered metered;
  std::optional<Usage> present;  // none while it does not run
  std::string json;              // as the server sent it
};

struct KeyUsage {
  std::string tenant;
  std::string key_id;  // empty: made without a key, on the server's socket
  uint64_t active_sandboxes = 0;
  uint64_t total_sandboxes = 0;
  Metered metered;
};

struct AccountUsage {
  std::vector<KeyUsage> keys;
  uint64_t active_sandboxes = 0;
  uint64_t total_sandboxes = 0;
  Metered metered;
  std::string json;  // as the server sent it
};

// ---- commands

struct ExecRequest {
  std::vector<std::string> argv = {};  // as they are; or:
  std::string shell = {};              // a line for /bin/bash -l -c
  std::map<std::string, std::string> env = {};
  std::string cwd = {};
  std::string user = {};                 // empty: the sandbox's default
  std::chrono::milliseconds timeout{0};  // 0: none; at its end the whole tree is killed, code 124
};

struct SpawnRequest : ExecRequest {
  bool stdin_open = false;
  bool pty = false;
  uint16_t cols = 80;
  uint16_t rows = 24;
};

// The outputs are UTF-8 text: other bytes are replaced. spawn() and attach() are exact.
struct ExecResult {
  int32_t exit_code = 0;
  int32_t exit_signal = 0;
  int32_t pid = 0;
  bool timed_out = false;
  std::string stdout_data;
  std::string stderr_data;
  uint64_t stdout_lost = 0;  // bytes that fell out of the middle of a very long output
  uint64_t stderr_lost = 0;
  std::chrono::microseconds duration{0};
};

struct ProcessEvent {
  enum class Kind {
    Output,
    Lost,
    Refused,  // something sent to the process did not reach it; `data` says why
    Input,    // after AttachInput::Resume: the process has got `bytes` of input, go on from there
    Exited,
  };
  Kind kind = Kind::Output;
  Stream stream = Stream::Stdout;
  std::string data;       // Output, Refused
  uint64_t offset = 0;    // Output and Lost, where known
  uint64_t lost = 0;      // Lost: that many bytes are gone
  uint64_t bytes = 0;     // Output: as the process wrote it. Input
  std::string timestamp;  // from LogReader
  ProcessInfo process;    // Exited
};

enum class AttachInput {
  Share,   // beside whoever else gives the process input
  Resume,  // instead of them: what they sent and the process has not got is dropped
};

struct OutputOffsets {
  uint64_t stdout_offset = 0;
  uint64_t stderr_offset = 0;
};

struct OutputRequest {
  Stream stream = Stream::Stdout;
  bool follow = false;
  uint64_t offset = 0;
};

struct LogRequest {
  bool follow = false;
  OutputOffsets offsets;
};

enum class KillScope : uint8_t {
  Tree,     // with every process the command started
  Process,  // the command alone
};

// ---- files

struct DirectoryList {
  std::vector<FileEntry> entries;
  bool truncated = false;
};

struct ListFilesRequest {
  bool recursive = false;
  bool hidden = true;
  uint64_t limit = 0;
};

struct RemovePathRequest {
  bool recursive = false;
  bool force = false;  // a missing path is fine
};

struct SearchRequest {
  std::string pattern;  // POSIX extended
  std::string glob;     // of file names
  std::string cwd;
  uint64_t max_results = 0;
  uint32_t context = 0;
  bool ignore_case = false;
};

struct SearchAnswer {
  std::vector<SearchMatch> matches;
  bool truncated = false;
};

enum class WatchScope : uint8_t { Directory, Recursive };

struct DownloadRequest {
  uint64_t offset = 0;
  std::optional<uint64_t> length;  // none: to the end
  std::function<void(uint64_t done, std::optional<uint64_t> total)> progress;
};

struct UploadRequest {
  std::optional<uint64_t> length;  // where it is known beforehand
  uint32_t mode = 0;               // 0: that of the file replaced, else 0644
  std::function<void(uint64_t done, std::optional<uint64_t> total)> progress;
};

struct TransferReport {
  uint64_t files = 0;
  uint64_t bytes = 0;
  // Sockets, pipes and devices, which stay where they are.
  uint64_t skipped = 0;
};

}  // namespace atl
