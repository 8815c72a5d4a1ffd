// Where sandboxes come from. Two phases: prewarm a template, then create (or find again) sessions
// from it. A backend is one folder under src/backends.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "atoll/network_log.h"
#include "atoll/sandbox_session.h"

namespace atl {

class UniqueFd;

struct SeedFile {
  std::string path;
  std::string content;
};

// Files of a directory, as a tar archive.
struct SeedTree {
  std::string path;
  std::string archive;
};

struct PrewarmInput {
  std::string template_key;
  // What stands for all that it is made from. A template of that key with the same one is reused,
  // with another it gets a new version. Empty: one of that key is reused whatever it was made from.
  std::string digest;
  std::string base = "base";  // the template it builds on
  std::vector<SeedFile> seed_files;
  std::vector<SeedTree> seed_trees;
  TemplateSettings settings;  // over those of the base
  // Runs once in a sandbox of the new template, before its state is captured.
  std::function<Task<Result<void>>(SandboxSession&)> bootstrap;
  std::function<void(const std::string&)> log;
};

struct PrewarmResult {
  std::string key;      // this version of it
  bool reused = false;  // the template was there already
};

// A state that becomes a template.
struct PublishInput {
  std::string template_key;
  std::string state;
  std::map<std::string, std::string> metadata;  // of the sandbox that it is a state of
  std::string source;                           // what the template remembers
  TemplateSettings settings;
};

// Enough to find a sandbox again after a restart; small and cheap to produce.
struct SessionState {
  std::string backend_name;
  std::string session_key;
  std::map<std::string, std::string> metadata;
};

// A template as a name, version or tag has found it.
struct FoundTemplate {
  std::string key;       // this version of it, for CreateInput
  std::string contents;  // differs where the contents do, whatever the key
  TemplateSettings settings;
};

// How far the import of a template has come.
struct TemplateProgress {
  std::string phase;  // "download", "unpack"
  uint32_t layer = 0;
  uint32_t layers = 0;
  uint64_t bytes = 0;
  uint64_t total = 0;
};

// An archive that is being received.
class TemplateUpload {
 public:
  virtual ~TemplateUpload() = default;
  virtual Task<Result<void>> write(std::string bytes) = 0;
};

struct ImportInput {
  std::string name;
  std::string tag;
  std::string source;  // REGISTRY/NAME:TAG; of an upload, what the template remembers
  std::shared_ptr<TemplateUpload> upload;
  std::string user;  // for the registry
  std::string password;
  bool insecure = false;  // plain HTTP beyond this host
  std::function<void(const TemplateProgress&)> progress;
};

struct ImportedTemplate {
  std::string key;
  bool reused = false;  // it stood for exactly this before
  uint64_t entries = 0;
  uint64_t bytes = 0;
  uint32_t reused_layers = 0;
  std::string note;  // of an uploaded archive, where it has one
};

// A template, or a state of a sandbox, that becomes an archive.
struct ExportInput {
  std::string template_key;
  std::string state;
  std::map<std::string, std::string> metadata;  // of the sandbox that it is a state of
  std::string note;                             // what the archive says of itself
};

struct CreateInput {
  std::string template_key;  // empty: the backend's default
  std::string session_key;   // the same key gives the same sandbox
  std::map<std::string, std::string> existing_metadata;
  std::map<std::string, std::string> tags;
  std::map<std::string, std::string> env;
  Limits limits;
  Profile profile = Profile::Dev;
  std::string default_user = "root";
  std::string workdir;         // empty: as usual
  bool awaited = false;        // its first command is likely to come at once
  bool ephemeral = false;      // its files need not survive a crash of the host
  bool existing = false;       // it has files already; NotFound where they are missing
  bool gate = false;           // it has a way out, which refuses all until set_network()
  bool frozen = false;         // the one to reattach is paused
  bool reattach_only = false;  // NotFound unless the one in existing_metadata still runs
  bool keep_settings = false;  // the one to reattach knows its environment, user and profile best
};

struct BuildTimings {
  uint32_t total_us = 0;
  uint32_t overlay_us = 0;
  uint32_t attach_us = 0;
  bool slot_was_ready = false;
};

// What a running sandbox may reach from now on.
struct NetworkRules {
  std::string policy;                          // as JSON
  bool deny_all = false;                       // which is what a sandbox begins with
  std::map<std::string, std::string> secrets;  // values of the names in it
  std::string ca_seed;                         // 32 bytes, the same for the same sandbox
};
struct NetworkHolds {
  std::string certificate;  // PEM, whom the sandbox has to trust; empty: nobody
};

// What a sandbox uses now, with what only its host can tell.
struct HostUsage : Usage {
  uint64_t cache_bytes = 0;  // of the memory: files that could be read again
  uint64_t disk_bytes = 0;   // written by it and still there; 0 where nobody counts
};

class SandboxHandle {
 public:
  virtual ~SandboxHandle() = default;
  virtual SandboxSession& session() = 0;
  virtual SessionState capture_state() const = 0;
  virtual BuildTimings timings() const = 0;

  // create() returns as soon as the sandbox exists; it takes commands once this has succeeded.
  virtual Task<Result<void>> ready() = 0;
  // What every later command inherits, told before anything else is asked of the sandbox: for one
  // that was made before its owner was known. ready() says whether it could be.
  virtual void assign(CreateInput input) = 0;
  virtual Task<Result<void>> set_limits(Limits limits) = 0;
  virtual Task<Result<void>> set_frozen(bool frozen) = 0;
  // Holds from the moment that this returns; connections that are not allowed any more are closed.
  virtual Task<Result<NetworkHolds>> set_network(NetworkRules rules) {
    if (rules.deny_all) co_return NetworkHolds{};
    co_return fail(ErrorCode::NotSupported, "this backend's sandboxes have no network");
  }
  // A connection to a port inside, for whoever speaks for the sandbox's users: to its loopback
  // addresses and nowhere else. Unavailable where nothing listens there.
  virtual Task<Result<UniqueFd>> dial(uint16_t port, std::chrono::milliseconds limit) = 0;
  virtual Task<Result<HostUsage>> usage() = 0;
  // Ends its processes and keeps its files: creating it again under its key resumes it.
  virtual Task<Result<void>> dispose() = 0;
  // Ends it and discards its files; answers before they are all gone.
  virtual Task<Result<void>> destroy() = 0;
};

struct EndedSandbox {
  std::string session_key;
  bool out_of_memory = false;
};

struct CopyTimings {
  uint32_t frozen_us = 0;  // for how long what runs in it stood still
  uint32_t total_us = 0;
  uint64_t bytes = 0;  // that the source had written
};

struct StateChange {
  enum class Kind : uint8_t { Added, Changed, Removed };
  Kind kind = Kind::Changed;
  char type = 'f';  // f(ile), d(irectory), l(ink) or o(ther)
  std::string path;
  uint64_t size_before = 0;
  uint64_t size_after = 0;
  std::string text;  // a unified diff, where both are small texts and it was asked for
};

struct Difference {
  std::vector<StateChange> changes;  // by path
  bool complete = true;              // false: there are more
};

struct DiffInput {
  std::string before;                           // a state
  std::string after;                            // a state; empty: the sandbox as it is now
  std::string session_key;                      // where there is no `after`
  std::map<std::string, std::string> metadata;  // of the sandbox that they are states of
  bool with_texts = false;
};

// What somebody still wants, asked for each thing that was found.
struct Known {
  std::function<bool(const std::string& session_key)> sandbox;
  std::function<bool(const std::string& state)> state;
  std::function<bool(const std::string& image)> memory;
};

struct MemoryInput {
  std::string session_key;
  std::string image;     // the name to keep its processes under
  std::string state;     // and its files of the same moment; empty: they are not kept
  bool end = false;      // the processes do not go on
  bool durable = false;  // both must survive a crash of the host
};

class SandboxBackend {
 public:
  virtual ~SandboxBackend() = default;
  virtual const std::string& name() const = 0;

  // Which template a name stands for now; ErrorCode::TemplateMissing where none.
  virtual Result<FoundTemplate> find_template(const std::string& reference) {
    FoundTemplate found;
    found.key = reference;
    return found;
  }
  virtual Task<Result<std::shared_ptr<TemplateUpload>>> start_upload() {
    co_return fail(ErrorCode::NotSupported, "this backend imports no templates");
  }
  // All files of it, as an archive that can be uploaded.
  virtual Task<Result<std::unique_ptr<FileReader>>> export_archive(ExportInput) {
    co_return fail(ErrorCode::NotSupported, "this backend exports nothing");
  }
  // A template of that name gets a new version.
  virtual Task<Result<ImportedTemplate>> import_template(ImportInput) {
    co_return fail(ErrorCode::NotSupported, "this backend imports no templates");
  }
  // Discards what no template and none of these sandboxes (SessionState::metadata) needs.
  using BackendState = std::map<std::string, std::string>;
  virtual Task<Result<void>> collect_templates(std::vector<BackendState> /*in_use*/) {
    co_return Result<void>();
  }
  // Idempotent, also under concurrent callers.
  virtual Task<Result<PrewarmResult>> prewarm(PrewarmInput input) = 0;
  virtual Task<Result<PrewarmResult>> publish_state(PublishInput) {
    co_return fail(ErrorCode::NotSupported, "this backend makes no templates of states");
  }
  // Creates or finds again; concurrent callers with one key get one sandbox. A template that does
  // not exist is ErrorCode::TemplateMissing.
  virtual Task<Result<std::shared_ptr<SandboxHandle>>> create(CreateInput input) = 0;
  // Discards the files of a sandbox that is not running.
  virtual Task<Result<void>> discard(std::string session_key) = 0;
  // Called when a sandbox ends that nobody asked to end.
  virtual void on_ended(std::function<void(EndedSandbox)> callback) = 0;
  // Called with what a sandbox has tried to reach.
  virtual void on_traffic(std::function<void(std::string, std::vector<NetworkEntry>)>) {}
  // Everything found at start that `known` does not claim is destroyed.
  virtual Task<Result<void>> reclaim(Known known) = 0;

  // A state is a sandbox's files at one moment, kept under a name of the caller's choice; what runs
  // in the sandbox stands still while they are copied. Copies cost the same whatever their size.
  virtual Task<Result<CopyTimings>> keep_state(std::string session_key, std::string state) = 0;
  // Gives a session key that has none the files of a state, or of another sandbox; create() with
  // `existing` then starts it.
  virtual Task<Result<CopyTimings>> copy_state(std::string state, std::string session_key) = 0;
  virtual Task<Result<CopyTimings>> copy_files(std::string from, std::string session_key) = 0;
  // The files of a sandbox that is not running become those of the state.
  virtual Task<Result<void>> restore_state(std::string session_key, std::string state) = 0;
  virtual Task<Result<void>> drop_state(std::string state) = 0;
  virtual Task<Result<Difference>> diff_states(DiffInput input) = 0;
  // Grows to so many bytes first, unless they are 0.
  virtual Task<Result<StorageInfo>> storage(uint64_t /*grow_to*/) {
    co_return fail(ErrorCode::NotSupported, "this backend has no storage of its own");
  }

  // Processes that are kept as they are, and brought to life again: as the sandbox that they were,
  // or as others. `bytes` of the timings is the image's size.
  virtual Task<Result<CopyTimings>> keep_memory(MemoryInput) {
    co_return fail(ErrorCode::NotSupported, "this backend keeps no processes");
  }
  // As create() with `existing`, whose files must be those of that moment.
  virtual Task<Result<std::shared_ptr<SandboxHandle>>> revive(CreateInput, std::string /*image*/) {
    co_return fail(ErrorCode::NotSupported, "this backend keeps no processes");
  }
  // At the start, before reclaim().
  virtual bool has_memory(const std::string& /*image*/) const { return false; }
  virtual Task<Result<void>> forget_memory(std::string /*image*/) { co_return Result<void>(); }
  virtual Task<Result<MemorySupport>> memory_support() {
    MemorySupport none;
    none.reason = "this backend keeps no processes";
    co_return none;
  }
  virtual std::vector<std::string> degraded() const = 0;
};

}  // namespace atl
