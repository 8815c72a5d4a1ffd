// What is known of a sandbox and kept in the database.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atoll/network_policy.h"
#include "atoll/result.h"
#include "atoll/types.h"
#include "sandbox/clock.h"

namespace atl::sandbox {

enum class Status : uint8_t { Provisioning, Running, Paused, Stopped, Failed };
std::string_view to_string(Status status);
std::optional<Status> parse_status(std::string_view text);

// Why a sandbox is not running: for programs. `Record::reason` says it in words.
enum class EndCause : uint8_t {
  None,
  Request,        // somebody asked for it
  Idle,           // its idle timeout
  Lifetime,       // its maximum lifetime
  Shelved,        // it stood stopped for as long as it may
  ServerStopped,  // the server ended with --on-exit stop
  ServerAway,     // it ended while no server was there
  OutOfMemory,
  AgentDied,
  Provisioning,  // it could not be prepared as asked
};
std::string_view to_string(EndCause cause);

// What happens to a sandbox when its lifetime is over.
enum class AtLifetime : uint8_t {
  Stop,  // its files stay; one that is ephemeral is deleted
  Delete,
  Pause,  // it stands still, without an end, until somebody resumes it
};

// A repository that is cloned into the workspace before the sandbox counts as running.
struct GitSource {
  std::string url;  // empty: none
  std::string ref;
  uint32_t depth = 0;  // 0: all
  std::vector<std::string> sparse;
};

// How a sandbox's ports answer requests from outside, beside its preview links.
struct Ingress {
  bool public_ports = false;       // anybody may open any of them
  bool has_traffic_token = false;  // whoever has that token may
  std::string host;  // what programs inside see as Host, "${PORT}" in it being the port; empty: the
                     // true one
  bool operator==(const Ingress&) const = default;
};

// What a caller asks for.
struct Spec {
  std::string name;
  std::string template_name = "base";
  std::map<std::string, std::string> env;
  std::vector<std::string> secrets;  // names; the values are looked up at each start
  bool all_secrets = false;          // those of the tenant at each start
  Limits limits;
  Profile profile = Profile::Dev;
  std::string user = "root";
  std::string workdir;  // where commands start; empty: as the template says
  std::map<std::string, std::string> metadata;
  GitSource git;
  std::string git_token;  // for the clone; never stored
  std::string idempotency_key;
  uint32_t max_lifetime_s = 0;  // 0: never
  AtLifetime at_lifetime = AtLifetime::Stop;
  uint32_t idle_timeout_s = 0;
  uint32_t delete_after_stopped_s = 0;
  bool auto_resume = true;  // a call to one that idleness stopped starts it again
  bool ephemeral = false;
  bool history = false;  // the state before every command is kept
  bool from_pool = true;
  NetworkPolicy network;  // what it may reach; secrets are in it by name only
  Ingress ingress;        // who may reach it
};

// Who a sandbox belongs to.
struct Owner {
  std::string tenant = "default";
  std::string key_id;  // the API key that made it; empty: none did
};

// What a sandbox has used in runs that are over.
struct Metered {
  uint64_t cpu_us = 0;
  uint64_t running_ms = 0;
  uint64_t memory_mb_ms = 0;  // memory limit times running time
};

struct Record {
  std::string id;
  Owner owner;
  // New with every create: a token for an earlier sandbox of the same id is no good for this one.
  std::string generation;
  Spec spec;
  std::string template_key;  // the version of its template; empty in records from before there were
  Status status = Status::Running;
  EndCause cause = EndCause::None;
  std::string reason;  // why it is not running
  std::map<std::string, std::string> backend_state;
  std::string memory;  // where its processes are kept while it is paused to disk
  uint64_t memory_bytes = 0;
  std::string snapshot;    // the last it was kept in or returned to
  bool untouched = false;  // no command has run since it was returned there
  int64_t created_at_ms = 0;
  int64_t started_at_ms = 0;
  int64_t ended_at_ms = 0;  // of the last run; 0 while running
  BootTime since;           // when it was started, or ended: what its deadlines count from
  Metered metered;
};

// Rules for requests carry headers, and those may be keys: where records lie, policies with rules
// are sealed. Without functions they are kept as they are.
struct PolicySeal {
  using Function = std::function<Result<std::string>(std::string_view text, const Record& of)>;
  Function seal, open;
};

Result<std::string> encode_record(const Record& record, const PolicySeal& seal = {});
Result<Record> decode_record(std::string_view text, const PolicySeal& seal = {});

}  // namespace atl::sandbox
