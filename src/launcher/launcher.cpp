#include "launcher/launcher.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/log.h"
#include "base/random_id.h"
#include "base/scope_exit.h"
#include "launcher/checks.h"
#include "launcher/mount_table.h"
#include "launcher/rootfs.h"
#include "launcher/survivors.h"
#include "os/file.h"
#include "os/id_map.h"
#include "os/seccomp_filter.h"
#include "os/syscalls.h"
#include "wire/agent_messages.h"

namespace atl::launcher {
namespace {

constexpr size_t kMaxMessage = 256u << 10;
// A builder waits most of its time for the kernel to move it into its control groups, and those
// that wait together wait once.
constexpr size_t kMaxBuilders = 16;
constexpr uint32_t kMaxFailuresInARow = 5;
constexpr int kRetryMs = 20;
constexpr int kEndRounds = 500;
constexpr int kQuietMs = 3;
constexpr std::chrono::milliseconds kSweepAtEnd{10'000};

}  // namespace

Result<std::unique_ptr<Launcher>> Launcher::create(LauncherConfig config) {
  ATOLL_ASSIGN(os::CgroupLayout layout, os::detect_cgroups());
  ATOLL_ASSIGN(os::CgroupTree cgroups, os::CgroupTree::open(layout, config.cgroup_name));
  ATOLL_ASSIGN(UniqueFd sockets, os::open_dir_at(AT_FDCWD, (config.run_dir + "/agents").c_str()));
  ATOLL_ASSIGN(std::vector<sock_filter> filter, build_main_filter());
  ATOLL_ASSIGN(storage::StatePool pool,
               storage::StatePool::open(config.data_dir, config.storage_bytes));
  Workshop workshop = Workshop::find(config.criu_dir);
  ATOLL_TRY(enter_minimal_mounts(config.run_dir + "/launcher", config.data_dir, config.agent));
  ATOLL_ASSIGN(UniqueFd data, os::open_dir_at(AT_FDCWD, kDataDir));
  ATOLL_TRY(pool.attach(kPoolDir));
  ATOLL_ASSIGN(UniqueFd trash_dir, os::open_dir_at(pool.trash(), "."));
  ATOLL_ASSIGN(Trash trash, Trash::open(std::move(trash_dir)));
  std::unique_ptr<Launcher> launcher(
      new Launcher(std::move(config), std::move(cgroups), std::move(pool), std::move(trash)));
  ATOLL_ASSIGN(launcher->layers_dir_, os::open_dir_at(data.get(), "layers"));
  ATOLL_TRY(os::make_dir_at(data.get(), "memory", 0700));
  ATOLL_ASSIGN(launcher->images_dir_, os::open_dir_at(data.get(), "memory"));
  launcher->clear_unfinished_images();
  workshop.build();
  launcher->workshop_ = std::move(workshop);
  launcher->set_agent_digest();
  launcher->sockets_dir_ = std::move(sockets);
  launcher->filter_ = std::move(filter);
  launcher->adopt_survivors();
  return launcher;
}

Launcher::Launcher(LauncherConfig config, os::CgroupTree cgroups, storage::StatePool pool,
                   Trash trash)
    : config_(std::move(config)),
      cgroups_(std::move(cgroups)),
      pool_(std::move(pool)),
      trash_(std::move(trash)),
      gates_(std::move(config_.egress), config_.steering),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      message_(kMaxMessage, 0),
      next_block_(os::kFirstIdBlock),
      reserve_(config_.reserve) {
  watch(config_.server.get(), [this] { receive(); });
}

void Launcher::watch(int fd, std::function<void()> handler) {
  handlers_[fd] = std::move(handler);
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

void Launcher::unwatch(int fd) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  handlers_.erase(fd);
}

void Launcher::serve_events(int timeout_ms) {
  epoll_event events[64];
  int count = epoll_wait(epoll_.get(), events, 64, timeout_ms);
  for (int i = 0; i < count; i++) {
    auto it = handlers_.find(events[i].data.fd);
    if (it == handlers_.end()) continue;  // removed by an earlier event of this batch
    auto handler = it->second;
    handler();
  }
  if (count == 0 && refill_wanted_) start_builders(reserve_ + pending_.size());
  auto again = std::exchange(unremoved_, {});
  for (const std::string& group : again) clean_up(group);
}

void Launcher::run() {
  fill_reserve();
  while (running_) {
    serve_events(refill_wanted_ ? kQuietMs : (unremoved_.empty() ? -1 : kRetryMs));
  }
}

void Launcher::send_bytes(const std::string& bytes) {
  // A server that does not read is a server that is gone; the hang-up tells.
  [[maybe_unused]] ssize_t ignored =
      ::send(config_.server.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

void Launcher::send_error(uint32_t id, const Error& error) {
  send(id, wire::LauncherFailure{.code = static_cast<uint8_t>(error.code()),
                                 .message = error.message()});
}

void Launcher::receive() {
  ssize_t size = recv(config_.server.get(), message_.data(), message_.size(), 0);
  if (size < 0 && errno == EINTR) return;
  if (size <= 0) {
    // The server has died without a word. A new one makes its own blanks.
    end_blank_slots();
    if (slots_.empty()) cgroups_.remove_tree();
    running_ = false;
    return;
  }
  if (static_cast<size_t>(size) < wire::kHeaderBytes) return;
  wire::FrameHeader header = wire::parse_header(message_.data());
  std::string_view payload(message_.data() + wire::kHeaderBytes,
                           static_cast<size_t>(size) - wire::kHeaderBytes);
  if (payload.size() == header.size) dispatch(header, payload);
}

void Launcher::dispatch(const wire::FrameHeader& header, std::string_view payload) {
  auto handle = [&]() -> Result<void> {
    switch (static_cast<wire::LauncherType>(header.type)) {
      case wire::LauncherType::BuildRequest:
        return on_build(header.id, payload);
      case wire::LauncherType::LimitsRequest:
        return on_limits(header.id, payload);
      case wire::LauncherType::FreezeRequest:
        return on_freeze(header.id, payload);
      case wire::LauncherType::StopRequest:
        return on_stop(header.id, payload);
      case wire::LauncherType::DestroyRequest:
        return on_destroy(header.id, payload);
      case wire::LauncherType::DiscardRequest:
        return on_discard(header.id, payload);
      case wire::LauncherType::PublishRequest:
        return on_publish(header.id, payload);
      case wire::LauncherType::KeepRequest:
        return on_keep(header.id, payload);
      case wire::LauncherType::CopyRequest:
        return on_copy(header.id, payload);
      case wire::LauncherType::RestoreRequest:
        return on_restore(header.id, payload);
      case wire::LauncherType::DropRequest:
        return on_drop(header.id, payload);
      case wire::LauncherType::DiffRequest:
        return on_diff(header.id, payload);
      case wire::LauncherType::ReserveRequest:
        return on_reserve(header.id, payload);
      case wire::LauncherType::UsageRequest:
        return on_usage(header.id, payload);
      case wire::LauncherType::ExportRequest:
        return on_export(header.id, payload);
      case wire::LauncherType::StorageRequest:
        return on_storage(header.id, payload);
      case wire::LauncherType::ImportRequest:
        return on_import(header.id, payload);
      case wire::LauncherType::CollectRequest:
        return on_collect(header.id, payload);
      case wire::LauncherType::SweepRequest:
        on_sweep(header.id);
        return {};
      case wire::LauncherType::CheckpointRequest:
        return on_checkpoint(header.id, payload);
      case wire::LauncherType::ReviveRequest:
        return on_revive(header.id, payload);
      case wire::LauncherType::ForgetRequest:
        return on_forget(header.id, payload);
      case wire::LauncherType::CriuRequest:
        return on_criu(header.id);
      case wire::LauncherType::GateRequest:
        return on_gate(header.id, payload);
      case wire::LauncherType::DialRequest:
        return on_dial(header.id, payload);
      case wire::LauncherType::StatusRequest:
        return on_status(header.id, payload);
      case wire::LauncherType::ShutdownRequest:
        on_shutdown(header.id);
        return {};
      default:
        return fail(ErrorCode::NotSupported, "unknown verb");
    }
  };
  auto result = handle();
  if (!result) send_error(header.id, result.error());
}

Result<Slot*> Launcher::find_live(const std::string& id) {
  auto it = slots_.find(id);
  if (it == slots_.end() || it->second.state != Slot::State::Live) {
    return fail(ErrorCode::NotFound, "no live slot " + id);
  }
  return &it->second;
}

Result<void> Launcher::on_build(uint32_t id, std::string_view payload) {
  ATOLL_ASSIGN(auto request, wire::decode<wire::BuildRequest>(payload));
  ATOLL_TRY(check_id(request.sandbox));
  if (request.layers.empty()) return fail(ErrorCode::InvalidArgument, "no layers");
  for (const std::string& layer : request.layers) ATOLL_TRY(check_id(layer));
  pending_.push_back({id, std::move(request), os::monotonic_us(), ready_.size() > pending_.size()});
  serve_pending();
  fill_reserve();
  return {};
}

void Launcher::serve_pending() {
  while (!pending_.empty() && !ready_.empty()) {
    PendingBuild build = std::move(pending_.front());
    pending_.pop_front();
    auto it = slots_.find(ready_.front());
    ready_.pop_front();
    if (it != slots_.end()) build_in(it->second, build);
    to_close_.clear();
  }
}

void Launcher::build_in(Slot& slot, const PendingBuild& build) {
  auto built = try_build(slot, build);
  if (!built) {
    // A slot whose root could not be attached is of no use to anybody.
    std::string sandbox = build.request.sandbox;
    kill_slot(slot);
    send_error(build.id, std::move(built).error().context("building " + sandbox));
    return;
  }
  built->slot_was_ready = build.slot_was_ready;
  built->total_us = static_cast<uint32_t>(os::monotonic_us() - build.arrived_us);
  send(build.id, *built);
}

Result<wire::Built> Launcher::try_build(Slot& slot, const PendingBuild& build) {
  const wire::BuildRequest& request = build.request;
  if (request.limits != config_.default_limits) {
    ATOLL_TRY(cgroups_.set_limits(slot.id, cgroup_limits(request.limits)));
  }
  int64_t begin = os::monotonic_us();
  RootfsPlan plan{.pool = &pool_,
                  .layers_dir = layers_dir_.get(),
                  .layers = request.layers,
                  .sandbox = request.sandbox,
                  .existing = request.existing,
                  .blank = {.name = "." + slot.id, .tree = std::move(slot.files)},
                  .mount_mapping = slot.mount_mapping.get(),
                  .id_base = slot.id_base,
                  .ephemeral = request.ephemeral,
                  .disk_bytes = request.limits.disk_bytes};
  // A sandbox that never was leaves no files; one that is started again keeps them.
  ScopeExit discard([&] {
    if (plan.fresh) (void)trash_.take(pool_.sandboxes(), request.sandbox);
  });
  ATOLL_ASSIGN(UniqueFd rootfs, mount_rootfs(plan));
  for (UniqueFd& tree : plan.used) to_close_.push_back(std::move(tree));
  int64_t mounted = os::monotonic_us();
  ATOLL_TRY(attach_rootfs(slot.pidfd.get(), rootfs, request.sandbox));
  if (request.gate) {
    ATOLL_ASSIGN(slot.gate, gates_.open(slot.id, slot.pidfd.get()));
  }
  discard.dismiss();
  to_close_.push_back(std::move(slot.mount_mapping));
  to_close_.push_back(std::move(rootfs));
  slot.state = Slot::State::Live;
  wire::Built built;
  built.slot = slot.id;
  built.pid = slot.pid;
  built.overlay_us = static_cast<uint32_t>(mounted - begin);
  built.attach_us = static_cast<uint32_t>(os::monotonic_us() - mounted);
  return built;
}

// Ends what nobody owns; sandboxes live on.
void Launcher::end_blank_slots() {
  reserve_ = 0;
  pending_.clear();
  waiting_work_.clear();
  for (auto& [name, slot] : slots_) {
    if (slot.state == Slot::State::Blank) kill_slot(slot);
  }
  for (auto& [fd, builder] : builders_) {
    unwatch(fd);
    auto shell = builder.finish();
    if (shell) os::pidfd_send_signal(shell->pidfd.get(), SIGKILL);
    if (shell) waitid(P_PIDFD, static_cast<id_t>(shell->pidfd.get()), nullptr, WEXITED);
    clean_up(builder.slot());
  }
  builders_.clear();
  unwatch(config_.server.get());
  // Bounded by the kernel's own work: everything in them has been killed.
  for (int i = 0; i < kEndRounds; i++) {
    bool ending = !unremoved_.empty() || !running_work_.empty();
    for (const auto& [name, slot] : slots_) ending |= slot.state == Slot::State::Ending;
    if (!ending) break;
    serve_events(kRetryMs);
  }
}

void Launcher::on_shutdown(uint32_t id) {
  end_blank_slots();
  if (slots_.empty()) cgroups_.remove_tree();
  trash_.finish(kSweepAtEnd);
  send(id, wire::LauncherDone{});
  running_ = false;
}

// Building a slot takes a core for a millisecond, right when the sandbox just created is given its
// first command. So it waits for a quiet moment, unless slots are getting scarce.
void Launcher::fill_reserve() {
  size_t wanted = reserve_ + pending_.size();
  if (ready_.size() + builders_.size() >= wanted) return;
  bool scarce = ready_.size() <= reserve_ / 2 || !pending_.empty();
  if (scarce) return start_builders(wanted);
  refill_wanted_ = true;
}

void Launcher::start_builders(size_t wanted) {
  refill_wanted_ = false;
  while (ready_.size() + builders_.size() < wanted && builders_.size() < kMaxBuilders) {
    size_t before = builders_.size();
    start_builder();
    if (builders_.size() == before) return;
  }
}

uint32_t Launcher::allocate_block() {
  while (blocks_in_use_.contains(next_block_)) {
    next_block_ = next_block_ == os::kLastIdBlock ? os::kFirstIdBlock : next_block_ + 1;
  }
  blocks_in_use_.insert(next_block_);
  return next_block_;
}

void Launcher::start_builder() {
  uint32_t block = allocate_block();
  ShellPlan plan{.slot = random_id("s", 15),
                 .id_base = os::id_block_base(block),
                 .filter = &filter_,
                 .run_dir = sockets_dir_.get(),
                 .pool = &pool_,
                 .server_uid = config_.server_uid,
                 .server_gid = config_.server_gid,
                 .limits = cgroup_limits(config_.default_limits)};
  auto builder = Builder::start(std::move(plan), cgroups_);
  if (!builder) {
    blocks_in_use_.erase(block);
    log(LogLevel::Error, "cannot start a slot builder", {{"error", builder.error().message()}});
    return;
  }
  int fd = builder->fd();
  builders_.emplace(fd, std::move(*builder));
  watch(fd, [this, fd] { builder_finished(fd); });
}

void Launcher::builder_finished(int fd) {
  auto it = builders_.find(fd);
  unwatch(fd);
  Builder builder = std::move(it->second);
  builders_.erase(it);
  auto shell = builder.finish();
  if (!shell) {
    log(LogLevel::Error, "building a slot failed", {{"error", shell.error().message()}});
    blocks_in_use_.erase(builder.id_base() / os::kIdBlockSize);
    clean_up(builder.slot());
    // Do not spin on a host that cannot: the next request tries again.
    if (++failures_in_a_row_ >= kMaxFailuresInARow || reserve_ == 0) {
      for (const PendingBuild& build : pending_) send_error(build.id, shell.error());
      pending_.clear();
      return;
    }
    return fill_reserve();
  }
  failures_in_a_row_ = 0;
  Slot slot;
  slot.id = builder.slot();
  slot.id_base = builder.id_base();
  slot.pid = shell->pid;
  slot.pidfd = std::move(shell->pidfd);
  slot.mount_mapping = std::move(shell->mount_mapping);
  slot.files = std::move(shell->files);
  int pidfd = slot.pidfd.get();
  std::string id = slot.id;
  slots_.emplace(id, std::move(slot));
  watch(pidfd, [this, id] { slot_ended(id); });
  ready_.push_back(id);
  serve_pending();
  fill_reserve();
}

void Launcher::kill_slot(Slot& slot) {
  slot.state = Slot::State::Ending;
  std::erase(ready_, slot.id);
  // Killing PID 1 would end the rest too, but only after they have been found one by one.
  if (!cgroups_.kill(slot.id)) os::pidfd_send_signal(slot.pidfd.get(), SIGKILL);
}

void Launcher::slot_ended(const std::string& id) {
  auto it = slots_.find(id);
  if (it == slots_.end()) return;
  Slot slot = std::move(it->second);
  slots_.erase(it);
  std::erase(ready_, id);
  unwatch(slot.pidfd.get());
  siginfo_t info{};
  // Not our child where an earlier launcher started it: then somebody else reaps.
  bool ours = waitid(P_PIDFD, static_cast<id_t>(slot.pidfd.get()), &info, WEXITED) == 0;
  bool oom = false;
  if (auto usage = cgroups_.usage(id)) oom = usage->oom_kills > 0;
  blocks_in_use_.erase(slot.id_base / os::kIdBlockSize);
  clean_up(id);
  if (slot.gate.valid()) gates_.close(id);
  if (slot.stop_request) send(*slot.stop_request, wire::LauncherDone{});
  if (slot.state == Slot::State::Live && !slot.leaving) {
    send(0, wire::Ended{.slot = id, .status = ours ? info.si_status : -1, .oom = oom});
  }
  fill_reserve();
}

void Launcher::clean_up(const std::string& id) {
  (void)trash_.take(pool_.sandboxes(), "." + id);  // still there where it stayed blank
  unlinkat(sockets_dir_.get(), (id + ".sock").c_str(), 0);
  if (!cgroups_.remove(id)) unremoved_.push_back(id);
}

void Launcher::adopt_survivors() {
  for (int dir : {pool_.sandboxes(), pool_.states()}) {
    for (const std::string& name : list_directories(dir, Names::Hidden)) {
      (void)trash_.take(dir, name);
    }
  }
  for (const std::string& group : cgroups_.groups()) {
    if (adopt(group)) continue;
    (void)cgroups_.kill(group);
    clean_up(group);
  }
}

bool Launcher::adopt(const std::string& group) {
  auto found = find_survivor(cgroups_.processes(group));
  if (!found) return false;
  Slot slot;
  slot.id = group;
  slot.pid = found->pid;
  slot.id_base = found->id_base;
  slot.pidfd = std::move(found->pidfd);
  slot.state = Slot::State::Live;
  blocks_in_use_.insert(slot.id_base / os::kIdBlockSize);
  // Its checkpoint may have ended with the launcher that took it.
  os::pidfd_send_signal(slot.pidfd.get(), wire::kWakeSignal);
  int pidfd = slot.pidfd.get();
  slots_.emplace(group, std::move(slot));
  watch(pidfd, [this, group] { slot_ended(group); });
  return true;
}

void run_launcher(LauncherConfig config) {
  prctl(PR_SET_NAME, "atoll-launcher");
  set_log_component("launcher");
  umask(022);
  setgroups(0, nullptr);
  // Revived sandboxes are started by criu, and are ours to bury.
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  auto launcher = Launcher::create(std::move(config));
  if (!launcher) {
    log(LogLevel::Error, "the launcher cannot start", {{"error", launcher.error().message()}});
    _exit(1);
  }
  (*launcher)->run();
  _exit(0);
}

}  // namespace atl::launcher
