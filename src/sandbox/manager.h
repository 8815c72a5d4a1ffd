// All sandboxes of this server: create, find, stop, resume, delete; lifetimes. One thread.
// Everything a caller was told survives the server's death.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "async/one_shot.h"
#include "base/unique_fd.h"
#include "sandbox/clock.h"
#include "sandbox/due.h"
#include "sandbox/event_log.h"
#include "sandbox/index.h"
#include "sandbox/pool.h"
#include "sandbox/preview_link.h"
#include "sandbox/snapshot.h"
#include "sandbox/usage_ledger.h"
#include "store/store.h"

namespace atl::sandbox {

struct Changes {
  std::optional<Limits> limits;
  std::optional<uint32_t> idle_timeout_s;
  std::optional<uint32_t> max_lifetime_s;
  std::optional<uint32_t> delete_after_stopped_s;
  std::optional<std::map<std::string, std::string>> metadata;
};

// A link to be.
struct PreviewWish {
  uint16_t port = 0;
  LinkAccess access = LinkAccess::Private;
  uint32_t seconds = 0;  // 0: it does not expire
};

// Why a sandbox ends.
struct Ending {
  EndCause cause = EndCause::Request;
  std::string reason;
};

// Where the files of a new sandbox come from: a kept state, or a sandbox as it is now.
struct Origin {
  std::string state;
  std::string sandbox;   // where there is no state
  std::string memory;    // processes of that moment; empty: it starts anew
  std::string snapshot;  // what the new one stands on
  std::string template_key;
  std::map<std::string, std::string> backend_state;
};

// What remains of a deleted sandbox for a day.
struct Tombstone {
  std::string tenant;
  std::string reason;
  int64_t ended_at_ms = 0;
};

struct ManagerOptions {
  PoolOptions pool;
  size_t max_sandboxes = 0;  // 0: as many as the host bears
  int64_t keep_events_ms = 86'400'000;
  uint64_t memory_images_bytes = 0;  // 0: no limit
};

// The values of the secrets that a sandbox is to have; fails where one does not exist.
using SecretSource = std::function<Result<std::map<std::string, std::string>>(
    const std::string& tenant, const Spec& spec)>;

// What sandboxes' policies need of the server.
struct NetworkSource {
  // The values of those of a tenant's secrets that exist.
  std::function<std::map<std::string, std::string>(const std::string& tenant,
                                                   const std::vector<std::string>& names)>
      secrets;
  // 32 bytes that only this server can compute.
  std::function<std::string(const std::string& label)> seed;
  PolicySeal seal;
};

class Manager : public std::enable_shared_from_this<Manager> {
 public:
  Manager(boost::asio::any_io_executor executor, SandboxBackend& backend, store::Store& store,
          ManagerOptions options);

  // Set before start().
  void set_secret_source(SecretSource source) { secrets_ = std::move(source); }
  void set_network_source(NetworkSource source) { network_ = std::move(source); }
  // Finds again what an earlier server left, and clears away what nobody was promised.
  Task<Result<void>> start();
  void warm_pool();
  // Empties the pool; with `end_all` also stops every sandbox.
  Task<void> shut_down(bool end_all);

  // The same idempotency key of a tenant gives the same sandbox.
  Task<Result<SandboxPtr>> create(Caller caller, Spec spec, std::optional<Origin> origin = {});
  Task<Result<void>> remove(SandboxPtr sandbox, Ending ending);
  Task<Result<void>> stop(SandboxPtr sandbox, Ending ending);
  Task<Result<void>> resume(SandboxPtr sandbox);
  Task<Result<void>> set_paused(SandboxPtr sandbox, bool paused);
  // Its processes are kept in a file and cost no memory; resume() brings them back.
  Task<Result<void>> pause_to_disk(SandboxPtr sandbox);
  Task<Result<void>> update(SandboxPtr sandbox, const Caller& caller, Changes changes);

  // Replaces the whole policy, and who may reach it where that is given. Holds when it returns, and
  // is kept.
  Task<Result<void>> set_network(SandboxPtr sandbox, NetworkPolicy policy,
                                 std::optional<Ingress> ingress = {});
  // Makes the policy of a sandbox hold, wherever its processes run now: after every start, restore
  // and return of the server. Fails where a secret is missing, unless that may be.
  enum class Missing { Refuse, Accept };
  Task<Result<void>> apply_network(Sandbox& sandbox, Missing missing);
  // A secret has another value, or none, for all sandboxes of the tenant from now on.
  Task<void> secret_changed(std::string tenant, std::string name);

  // Links to its ports; they end with it.
  Task<Result<PreviewLink>> add_preview(SandboxPtr sandbox, PreviewWish wish);
  Task<Result<void>> remove_preview(SandboxPtr sandbox, std::string id);
  const PreviewLinks& previews() const { return previews_; }
  // A connection to a port inside. One that sleeps is woken where it may be: as session() does, and
  // also from a pause in memory.
  Task<Result<UniqueFd>> dial(SandboxPtr sandbox, uint16_t port);

  Task<Result<SnapshotPtr>> take_snapshot(SandboxPtr sandbox, SnapshotInput input);
  Task<Result<void>> remove_snapshot(SnapshotPtr snapshot);
  // What a new sandbox of the template would be.
  Task<Result<SnapshotPtr>> import_snapshot(Caller caller, std::string template_key,
                                            SnapshotInput input);
  // A snapshot with the processes of that moment. Without `leave_running` they end, and it is
  // stopped.
  Task<Result<SnapshotPtr>> take_checkpoint(SandboxPtr sandbox, SnapshotInput input,
                                            bool leave_running);
  // What runs in it ends; its files are the snapshot's, and it runs again.
  Task<Result<void>> restore(SandboxPtr sandbox, SnapshotPtr snapshot);
  Task<Result<SandboxPtr>> create_from(Caller caller, SnapshotPtr snapshot, Spec spec);
  Task<Result<std::vector<SandboxPtr>>> fork(SandboxPtr sandbox, Caller caller,
                                             std::vector<Spec> specs);
  // The same with its processes: as they are now, or were at the checkpoint.
  Task<Result<std::vector<SandboxPtr>>> fork_memory(SandboxPtr sandbox, Caller caller,
                                                    std::vector<Spec> specs,
                                                    SnapshotPtr checkpoint);
  // From a snapshot to another, or to what the sandbox is now.
  Task<Result<Difference>> diff(SandboxPtr sandbox, SnapshotPtr from, SnapshotPtr to,
                                bool with_texts);
  // With a history, the state before a command is kept; undo returns to the last of them, and again
  // to the one before.
  Task<Result<void>> before_command(SandboxPtr sandbox, std::string command);
  Task<Result<SnapshotPtr>> undo(SandboxPtr sandbox);
  std::vector<SnapshotPtr> history(const Sandbox& sandbox) const;  // oldest first
  Result<SnapshotPtr> find_point(const Sandbox& sandbox, uint32_t number) const;
  Result<SnapshotPtr> find_snapshot(const Caller& caller, const std::string& id_or_tag) const;
  const SnapshotIndex& snapshots() const { return snapshots_; }

  // By id or by name. Somebody else's is as if it did not exist.
  Result<SandboxPtr> find(const Caller& caller, const std::string& id_or_name) const;
  // The id behind an id or name, also of one that was deleted within the last day.
  Result<std::string> known_id(const Caller& caller, const std::string& id_or_name) const;
  std::vector<SandboxPtr> list(const Caller& caller) const { return index_.list(caller); }
  size_t size() const { return index_.size(); }
  // The live session of a running sandbox. It outlives a stop or delete that comes while it is in
  // use: its calls then fail. One that idleness stopped is started again.
  Task<Result<std::shared_ptr<SandboxSession>>> session(SandboxPtr sandbox);
  void note_activity(Sandbox& sandbox);

  // What it has used up to now.
  Task<Metered> metered(SandboxPtr sandbox);
  const UsageLedger& ledger() const { return ledger_; }
  EventLog& events() { return events_; }
  const Index& index() const { return index_; }

  // How many sandboxes and snapshots are of this version of a template, or are about to be.
  size_t users_of_template(const std::string& key) const;
  // The template is gone: so are blank sandboxes of it, and layers that nobody else needs.
  Task<Result<void>> template_removed(std::string key);
  Task<Result<void>> collect_templates();

  SandboxBackend& backend() { return backend_; }
  store::Store& store() { return store_; }
  const Pool& pool() const { return *pool_; }
  const Limits& default_limits() const { return pool_->limits(); }

 private:
  Result<void> check(const Caller& caller, const Spec& spec) const;
  Task<Result<SandboxPtr>> build(Caller caller, Spec spec, std::optional<Origin> origin);
  // A sandbox to be, with what its template gives it.
  struct Order {
    Owner owner;
    Spec spec;
    FoundTemplate found;
  };
  Task<Result<SandboxPtr>> claim(std::shared_ptr<SandboxHandle> handle, Order order);
  void make_ready_behind(std::shared_ptr<SandboxHandle> handle);
  Task<Result<SandboxPtr>> build_cold(Order order, std::optional<Origin> origin);
  Result<FoundTemplate> template_for(const Spec& spec, const std::optional<Origin>& origin);
  FoundTemplate template_of(const Record& record) const;
  void follow_template(const std::string& name, const FoundTemplate& found);
  Task<std::vector<Result<SandboxPtr>>> create_all(Caller caller, std::vector<Spec> specs,
                                                   Origin origin);
  Task<Result<std::vector<SandboxPtr>>> all_or_none(std::vector<Result<SandboxPtr>> all);
  Task<Result<SnapshotPtr>> keep_snapshot(Sandbox& sandbox, Snapshot snapshot, std::string event);
  Result<void> check_can_keep(const Sandbox& sandbox) const;
  Task<Result<void>> check_memory_room(SandboxHandle& handle) const;
  Task<Result<void>> wake(Sandbox& sandbox);
  Task<Result<void>> revive_locked(Sandbox& sandbox, std::string image, std::string event);
  Task<void> drop_paused_memory(Sandbox& sandbox);
  bool is_memory_known(const std::string& image) const;
  Task<Result<void>> copy_files(const Origin& origin, const std::string& id);
  Task<Result<void>> renew_identity(SandboxSession& session);
  Result<void> load_snapshots();
  Task<void> remove_expired_snapshots();
  uint32_t next_point(const Sandbox& sandbox) const;
  Task<void> remove_points(std::vector<SnapshotPtr> points);
  using Saved = std::shared_ptr<async::OneShot<Result<void>>>;
  Saved save_meanwhile(const SandboxPtr& sandbox);
  Task<Result<SandboxPtr>> acknowledge(SandboxPtr sandbox, Result<void> configured, Saved saved);
  SandboxPtr describe(std::shared_ptr<SandboxHandle> handle, Order order, Source source) const;
  Result<CreateInput> input_for(const std::string& id, const Owner& owner, const Spec& spec,
                                const FoundTemplate& found) const;
  void add_network_env(const NetworkPolicy& policy, CreateInput& input) const;
  Task<Result<void>> prepare_inside(Sandbox& sandbox, NetworkHolds holds);
  Task<Result<void>> trust_inside(SandboxSession& session, const std::string& certificate);
  void note_traffic(const std::string& id, std::vector<NetworkEntry> entries);
  CreateInput input_to_reattach(const Record& record) const;
  void start_provisioning(const SandboxPtr& sandbox);
  Task<void> provision(SandboxPtr sandbox);

  // Writes the record and tells of the change.
  Task<Result<void>> save(Sandbox& sandbox, std::string event);
  Task<Result<void>> save_or_restore(Sandbox& sandbox, Record before, std::string event);
  Task<Result<void>> write(store::Write write);
  Result<void> put(const Record& record, store::Write& change) const;
  Result<void> put(const Snapshot& snapshot, store::Write& change) const;
  Event event_of(const Sandbox& sandbox, std::string type);
  Event event_of_link(const PreviewLink& link, std::string type);
  Result<void> load_previews();
  void erase_previews(const std::string& sandbox, store::Write& change) const;
  void forget_previews(const std::string& sandbox);
  Task<void> forget_expired_previews();
  Task<Result<std::shared_ptr<SandboxHandle>>> handle_for_traffic(SandboxPtr sandbox);

  Task<Result<void>> adopt(Record record);
  Task<void> settle_run(Sandbox& sandbox, Ending ending);
  Task<Result<void>> stop_locked(Sandbox& sandbox, Ending ending);
  void end_run(Sandbox& sandbox, Ending ending, uint64_t cpu_us);
  void sandbox_ended(const EndedSandbox& ended);
  Task<void> record_end(SandboxPtr sandbox, std::shared_ptr<SandboxHandle> ended,
                        bool out_of_memory);
  Task<void> clear_away(SandboxPtr sandbox);
  Task<void> cleared_away();
  Task<void> enforce_lifetimes();
  Task<void> end_due(SandboxPtr sandbox, Due what);
  // False where it was used or prolonged while its end waited for its turn.
  static bool still_due(const Sandbox& sandbox, const Ending& ending);
  Task<void> end_lifetime(SandboxPtr sandbox);
  Task<void> expire(SandboxPtr sandbox, Ending ending, bool whole);
  Task<void> forget_old();
  Result<void> load_tombstones();
  const Tombstone* tombstone(const Caller& caller, const std::string& id) const;

  boost::asio::any_io_executor executor_;
  SandboxBackend& backend_;
  store::Store& store_;
  ManagerOptions options_;
  std::shared_ptr<Pool> pool_;
  EventLog events_;
  UsageLedger ledger_;
  SecretSource secrets_;
  NetworkSource network_;
  boost::asio::steady_timer lifetime_timer_;
  Index index_;
  SnapshotIndex snapshots_;
  PreviewLinks previews_;
  std::map<std::string, Tombstone> tombstones_;
  std::map<std::string, FoundTemplate> followed_;     // what names of templates stood for last
  std::map<std::string, size_t> template_under_way_;  // sandboxes that are not in the index yet
  using Turn = std::shared_ptr<async::OneShot<bool>>;
  std::map<std::pair<std::string, std::string>, std::vector<Turn>> keys_under_way_;
  size_t under_way_ = 0;  // creations that are not in the index yet
  size_t clearing_ = 0;   // deleted sandboxes that are being cleared away
  bool stopping_ = false;
};

}  // namespace atl::sandbox
