// The only privileged process: builds, stops and destroys sandboxes, and nothing else. One thread,
// one event loop. It trusts the server for intent but checks every id and resolves no path that a
// sandbox could influence.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "launcher/builder.h"
#include "launcher/chore.h"
#include "launcher/config.h"
#include "launcher/gate_keeper.h"
#include "launcher/importer.h"
#include "launcher/slot.h"
#include "launcher/trash.h"
#include "launcher/workshop.h"
#include "os/cgroup_tree.h"
#include "storage/state_pool.h"
#include "wire/frame.h"

namespace atl::launcher {

struct RevivePlan;

class Launcher {
 public:
  static Result<std::unique_ptr<Launcher>> create(LauncherConfig config);
  // Returns when the server has gone or asked for shutdown.
  void run();

 private:
  Launcher(LauncherConfig config, os::CgroupTree cgroups, storage::StatePool pool, Trash trash);

  struct PendingBuild {
    uint32_t id;
    wire::BuildRequest request;
    int64_t arrived_us;
    bool slot_was_ready;
  };

  // Requests.
  void receive();
  void dispatch(const wire::FrameHeader& header, std::string_view payload);
  Result<void> on_build(uint32_t id, std::string_view payload);
  Result<void> on_limits(uint32_t id, std::string_view payload);
  Result<void> on_freeze(uint32_t id, std::string_view payload);
  Result<void> on_stop(uint32_t id, std::string_view payload);
  Result<void> on_destroy(uint32_t id, std::string_view payload);
  Result<void> on_discard(uint32_t id, std::string_view payload);
  Result<void> on_publish(uint32_t id, std::string_view payload);
  Result<void> on_reserve(uint32_t id, std::string_view payload);
  Result<void> on_usage(uint32_t id, std::string_view payload);
  Result<void> on_storage(uint32_t id, std::string_view payload);
  Result<void> on_status(uint32_t id, std::string_view payload);
  Result<void> on_import(uint32_t id, std::string_view payload);
  void import_advanced(int fd);
  Result<void> on_collect(uint32_t id, std::string_view payload);
  void on_sweep(uint32_t id);
  Result<void> on_export(uint32_t id, std::string_view payload);
  Result<void> on_gate(uint32_t id, std::string_view payload);
  Result<void> on_dial(uint32_t id, std::string_view payload);
  void on_shutdown(uint32_t id);

  // States.
  Result<void> on_keep(uint32_t id, std::string_view payload);
  Result<void> on_copy(uint32_t id, std::string_view payload);
  Result<void> on_restore(uint32_t id, std::string_view payload);
  Result<void> on_drop(uint32_t id, std::string_view payload);
  Result<void> discard_state(const std::string& state);
  Result<void> on_diff(uint32_t id, std::string_view payload);
  Result<UniqueFd> open_layer(const std::string& layer) const;
  struct StateWork {
    uint32_t id;       // of the request
    std::string slot;  // frozen meanwhile; empty: none
    Chore::Work work;
    std::function<void()> done;                      // once it has succeeded, before the answer
    std::function<void(Chore::Outcome&)> take = {};  // same, with what came of it
    std::function<void()> failed = {};
    const char* name = "atoll-copier";
    unsigned seconds = 60;
  };
  void enqueue(StateWork work);
  void start_state_work();
  void state_work_ended(int fd);
  Result<wire::Kept> copy_frozen(const std::string& slot,
                                 const std::function<Result<void>()>& copy);

  // Processes.
  Result<void> check_memory_support() const;
  Result<void> on_checkpoint(uint32_t id, std::string_view payload);
  Result<void> on_revive(uint32_t id, std::string_view payload);
  void add_revived(const RevivePlan& plan, pid_t pid, UniqueFd pidfd);
  Result<void> on_forget(uint32_t id, std::string_view payload);
  Result<void> on_criu(uint32_t id);
  void clear_unfinished_images();
  void set_agent_digest();

  void end_blank_slots();
  void serve_events(int timeout_ms);

  // Slots.
  void fill_reserve();
  void start_builders(size_t wanted);
  void start_builder();
  void builder_finished(int fd);
  void serve_pending();
  void build_in(Slot& slot, const PendingBuild& build);
  Result<wire::Built> try_build(Slot& slot, const PendingBuild& build);
  void kill_slot(Slot& slot);
  void slot_ended(const std::string& id);
  void clean_up(const std::string& id);
  void adopt_survivors();
  bool adopt(const std::string& group);
  uint32_t allocate_block();
  Result<Slot*> find_live(const std::string& id);

  template <class Message>
  void send(uint32_t id, const Message& message) {
    std::string bytes;
    wire::append_frame(bytes, id, message);
    send_bytes(bytes);
  }
  void send_bytes(const std::string& bytes);
  void send_error(uint32_t id, const Error& error);
  void watch(int fd, std::function<void()> handler);
  void unwatch(int fd);

  LauncherConfig config_;
  os::CgroupTree cgroups_;
  storage::StatePool pool_;
  Trash trash_;
  GateKeeper gates_;
  UniqueFd epoll_;
  UniqueFd layers_dir_;
  UniqueFd sockets_dir_;
  UniqueFd images_dir_;
  Workshop workshop_;
  std::string agent_digest_;
  std::vector<sock_filter> filter_;
  std::map<int, std::function<void()>> handlers_;
  std::map<std::string, Slot> slots_;
  std::map<int, Builder> builders_;
  std::map<int, Importer> importers_;
  std::deque<std::string> ready_;
  std::deque<PendingBuild> pending_;
  std::deque<StateWork> waiting_work_;
  struct RunningWork {
    Chore chore;
    StateWork work;
  };
  std::map<int, RunningWork> running_work_;
  std::set<uint32_t> blocks_in_use_;
  // Closing a mount can take the kernel a tenth of a millisecond, for which no caller should wait.
  std::vector<UniqueFd> to_close_;
  std::vector<std::string> unremoved_;  // cgroups the kernel still held when last tried
  std::string message_;                 // the server's latest
  uint32_t next_block_;
  uint32_t reserve_;
  uint32_t failures_in_a_row_ = 0;
  bool refill_wanted_ = false;
  bool running_ = true;
};

}  // namespace atl::launcher
