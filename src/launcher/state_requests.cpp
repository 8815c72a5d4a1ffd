// The verbs that copy and keep sandboxes' files. Each copy makes the file system write its state to
// the disk, which takes milliseconds: children do it, several at once.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "image/export.h"
#include "image/layer_store.h"
#include "image/staging.h"
#include "launcher/checks.h"
#include "launcher/launcher.h"
#include "launcher/mount_table.h"
#include "launcher/rootfs.h"
#include "launcher/survivors.h"
#include "os/file.h"
#include "storage/tree_diff.h"

namespace atl::launcher {
namespace {

constexpr size_t kWorkAtOnce = 8;
constexpr unsigned kLongSeconds = 3600;
// One message must hold it.
constexpr size_t kMaxDiffBytes = 180u << 10;
constexpr std::chrono::milliseconds kFreezeLimit{5000};

template <class Message>
Chore::Outcome outcome(const Message& message) {
  Chore::Outcome result;
  wire::append_frame(result.bytes, 0, message);
  return result;
}

// Under a hidden name until it is whole: what a crash leaves half done is thrown away.
Result<void> copy_whole(const storage::StatePool& pool, int from, const std::string& source,
                        const std::string& sandbox) {
  std::string unfinished = "." + sandbox;
  int dir = pool.sandboxes();
  ATOLL_TRY(pool.copy_tree(from, source, dir, unfinished));
  failpoint("copy.unfinished");
  ATOLL_TRY(renew_work(dir, unfinished));
  failpoint("copy.renewed");
  if (syscall(SYS_renameat2, dir, unfinished.c_str(), dir, sandbox.c_str(), RENAME_NOREPLACE) !=
      0) {
    return fail_errno("name the files of", sandbox);
  }
  failpoint("copy.named");
  return {};
}

// What is undone when it fails must not have been there before.
Result<void> check_free(int dir, const std::string& name) {
  if (faccessat(dir, name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0) return {};
  return fail(ErrorCode::Conflict, "there are files of " + name + " already");
}

Result<void> exchange(const storage::StatePool& pool, const std::string& one,
                      const std::string& other) {
  int dir = pool.sandboxes();
  if (syscall(SYS_renameat2, dir, one.c_str(), dir, other.c_str(), RENAME_EXCHANGE) != 0) {
    return fail_errno("exchange the files of", other);
  }
  return {};
}

Result<image::LayerStore> open_layers() {
  return image::LayerStore::open(std::string(kDataDir) + "/layers");
}

}  // namespace

void Launcher::enqueue(StateWork work) {
  waiting_work_.push_back(std::move(work));
  start_state_work();
}

void Launcher::start_state_work() {
  while (!waiting_work_.empty() && running_work_.size() < kWorkAtOnce) {
    StateWork work = std::move(waiting_work_.front());
    waiting_work_.pop_front();
    auto chore = Chore::start(work.name, work.seconds, work.work);
    if (!chore) {
      if (work.failed) work.failed();
      send_error(work.id, chore.error());
      continue;
    }
    int fd = chore->fd();
    running_work_.emplace(fd, RunningWork{std::move(*chore), std::move(work)});
    watch(fd, [this, fd] { state_work_ended(fd); });
  }
}

void Launcher::state_work_ended(int fd) {
  auto it = running_work_.find(fd);
  unwatch(fd);
  RunningWork ended = std::move(it->second);
  running_work_.erase(it);
  auto result = ended.chore.finish();
  // The child thaws what it froze, unless it was ended before.
  auto slot = slots_.find(ended.work.slot);
  if (!result && slot != slots_.end() && !slot->second.frozen) {
    (void)cgroups_.freeze(slot->first, false);
  }
  if (result && ended.work.done) ended.work.done();
  if (result && ended.work.take) ended.work.take(*result);
  if (!result && ended.work.failed) ended.work.failed();
  if (result) {
    wire::FrameHeader header = wire::parse_header(result->bytes.data());
    header.id = ended.work.id;
    std::string bytes;
    wire::append_header(bytes, header);
    send_bytes(bytes + result->bytes.substr(wire::kHeaderBytes));
  } else {
    send_error(ended.work.id, result.error());
  }
  start_state_work();
}

// Nothing in the sandbox runs while it is copied: the copy is a state that was.
Result<wire::Kept> Launcher::copy_frozen(const std::string& slot,
                                         const std::function<Result<void>()>& copy) {
  wire::Kept kept;
  int64_t begin = os::monotonic_us();
  bool freeze = !slot.empty() && !slots_.at(slot).frozen;
  Result<void> copied;
  if (freeze) copied = cgroups_.freeze(slot, true);
  if (copied && freeze) copied = cgroups_.await_frozen(slot, kFreezeLimit);
  if (copied) copied = copy();
  if (freeze) ATOLL_TRY(cgroups_.freeze(slot, false));
  if (!copied) return fail(std::move(copied).error());
  kept.total_us = static_cast<uint32_t>(os::monotonic_us() - begin);
  if (freeze) kept.frozen_us = kept.total_us;
  return kept;
}

Result<void> Launcher::on_keep(uint32_t id, std::string_view payload) {
  ATOLL_ASSIGN(auto request, wire::decode<wire::KeepRequest>(payload));
  ATOLL_TRY(check_id(request.sandbox));
  ATOLL_TRY(check_id(request.state));
  if (!request.slot.empty()) ATOLL_TRY(find_live(request.slot));
  ATOLL_TRY(check_free(pool_.states(), request.state));
  auto work = [this, request]() -> Result<Chore::Outcome> {
    auto keep = [&]() -> Result<void> {
      failpoint("keep.frozen");
      ATOLL_TRY(pool_.keep_tree(pool_.sandboxes(), request.sandbox, request.state));
      failpoint("keep.copied");
      return {};
    };
    ATOLL_ASSIGN(wire::Kept kept, copy_frozen(request.slot, keep));
    kept.bytes = pool_.size_of(pool_.sandboxes(), request.sandbox);
    return outcome(kept);
  };
  auto undo = [this, request] { (void)discard_state(request.state); };
  enqueue({.id = id, .slot = request.slot, .work = work, .done = {}, .failed = undo});
  return {};
}

Result<void> Launcher::on_copy(uint32_t id, std::string_view payload) {
  ATOLL_ASSIGN(auto request, wire::decode<wire::CopyRequest>(payload));
  bool of_state = !request.state.empty();
  ATOLL_TRY(check_id(of_state ? request.state : request.sandbox));
  ATOLL_TRY(check_id(request.copy));
  if (!request.slot.empty()) ATOLL_TRY(find_live(request.slot));
  ATOLL_TRY(check_free(pool_.sandboxes(), request.copy));
  auto work = [this, request, of_state]() -> Result<Chore::Outcome> {
    int from = of_state ? pool_.states() : pool_.sandboxes();
    const std::string& source = of_state ? request.state : request.sandbox;
    auto copy = [&] { return copy_whole(pool_, from, source, request.copy); };
    ATOLL_ASSIGN(wire::Kept kept, copy_frozen(request.slot, copy));
    return outcome(kept);
  };
  auto undo = [this, request] {
    (void)trash_.take(pool_.sandboxes(), "." + request.copy);
    (void)trash_.take(pool_.sandboxes(), request.copy);
  };
  enqueue({.id = id, .slot = request.slot, .work = work, .done = {}, .failed = undo});
  return {};
}

Result<void> Launcher::on_restore(uint32_t id, std::string_view payload) {
  ATOLL_ASSIGN(auto request, wire::decode<wire::RestoreRequest>(payload));
  ATOLL_TRY(check_id(request.sandbox));
  ATOLL_TRY(check_id(request.state));
  std::string other = "." + request.sandbox + "-restored";
  auto work = [this, request, other]() -> Result<Chore::Outcome> {
    ATOLL_TRY(pool_.copy_tree(pool_.states(), request.state, pool_.sandboxes(), other));
    failpoint("restore.copied");
    ATOLL_TRY(renew_work(pool_.sandboxes(), other));
    failpoint("restore.renewed");
    ATOLL_TRY(exchange(pool_, other, request.sandbox));
    failpoint("restore.exchanged");
    return outcome(wire::LauncherDone{});
  };
  auto done = [this, other] {
    failpoint("restore.untidy");
    (void)trash_.take(pool_.sandboxes(), other);
  };
  enqueue({.id = id, .slot = "", .work = work, .done = done, .failed = done});
  return {};
}

Result<void> Launcher::on_publish(uint32_t id, std::string_view payload) {
  ATOLL_ASSIGN(auto request, wire::decode<wire::PublishRequest>(payload));
  bool of_state = !request.state.empty();
  ATOLL_TRY(check_id(of_state ? request.state : request.sandbox));
  ATOLL_TRY(check_id(request.layer));
  ATOLL_TRY(check_free(pool_.states(), request.layer));
  auto work = [this, request, of_state]() -> Result<Chore::Outcome> {
    int from = of_state ? pool_.states() : pool_.sandboxes();
    ATOLL_TRY(pool_.keep_tree(from, of_state ? request.state : request.sandbox, request.layer));
    failpoint("publish.kept");
    return outcome(wire::LauncherDone{});
  };
  auto done = [this, request, of_state] {
    failpoint("publish.untidy");
    if (!of_state) (void)trash_.take(pool_.sandboxes(), request.sandbox);
  };
  auto undo = [this, request] { (void)discard_state(request.layer); };
  enqueue({.id = id, .slot = "", .work = work, .done = done, .failed = undo});
  return {};
}

Result<void> Launcher::on_drop(uint32_t id, std::string_view payload) {
  ATOLL_ASSIGN(auto request, wire::decode<wire::DropRequest>(payload));
  ATOLL_TRY(check_id(request.state));
  ATOLL_TRY(discard_state(request.state));
  send(id, wire::LauncherDone{});
  return {};
}

Result<void> Launcher::discard_state(const std::string& state) {
  ATOLL_TRY(pool_.release_state(state));
  failpoint("drop.released");
  ATOLL_TRY(trash_.take(pool_.states(), state));
  failpoint("drop.trashed");
  return {};
}

Result<UniqueFd> Launcher::open_layer(const std::string& layer) const {
  auto imported = os::open_beneath(layers_dir_.get(), layer.c_str(), O_RDONLY | O_DIRECTORY);
  if (imported || imported.error().sys_errno() != ENOENT) return imported;
  return os::open_beneath(pool_.states(), (layer + "/upper").c_str(), O_RDONLY | O_DIRECTORY);
}

Result<void> Launcher::on_diff(uint32_t id, std::string_view payload) {
  ATOLL_ASSIGN(auto request, wire::decode<wire::DiffRequest>(payload));
  bool now = request.after.empty();
  ATOLL_TRY(check_id(request.before));
  ATOLL_TRY(check_id(now ? request.sandbox : request.after));
  for (const std::string& layer : request.layers) ATOLL_TRY(check_id(layer));
  auto work = [this, request, now]() -> Result<Chore::Outcome> {
    auto upper = [](int dir, const std::string& name) {
      return os::open_beneath(dir, (name + "/upper").c_str(), O_RDONLY | O_DIRECTORY);
    };
    ATOLL_ASSIGN(UniqueFd before, upper(pool_.states(), request.before));
    ATOLL_ASSIGN(UniqueFd after, now ? upper(pool_.sandboxes(), request.sandbox)
                                     : upper(pool_.states(), request.after));
    std::vector<UniqueFd> layers;
    storage::DiffPlan plan{.before = before.get(), .after = after.get()};
    for (const std::string& layer : request.layers) {
      ATOLL_ASSIGN(UniqueFd fd, open_layer(layer));
      plan.layers.push_back(fd.get());
      layers.push_back(std::move(fd));
    }
    plan.max_bytes = kMaxDiffBytes;
    plan.with_texts = request.with_texts;
    ATOLL_ASSIGN(storage::Diff diff, storage::diff_trees(plan));
    wire::Difference reply;
    reply.complete = diff.complete;
    for (storage::Change& change : diff.changes) {
      reply.changes.push_back({.kind = static_cast<uint8_t>(change.kind),
                               .type = static_cast<uint8_t>(change.type),
                               .path = std::move(change.path),
                               .size_before = change.size_before,
                               .size_after = change.size_after,
                               .text = std::move(change.text)});
    }
    return outcome(reply);
  };
  enqueue({.id = id, .slot = "", .work = work, .done = {}});
  return {};
}

static std::string layer_path(const std::string& layer) {
  std::string imported = std::string(kDataDir) + "/layers/" + layer;
  if (access(imported.c_str(), F_OK) == 0) return imported;
  return std::string(kPoolDir) + "/states/" + layer + "/upper";
}

// The server waits for it and holds the layers meanwhile.
Result<void> Launcher::on_export(uint32_t id, std::string_view payload) {
  ATOLL_ASSIGN(auto request, wire::decode<wire::ExportRequest>(payload));
  ATOLL_TRY(check_id(request.staging));
  if (!request.state.empty()) ATOLL_TRY(check_id(request.state));
  image::ExportPlan plan{.layers = {}, .place = kNewRoot, .file = -1};
  if (!request.state.empty()) plan.layers.push_back(layer_path(request.state));
  for (const std::string& layer : request.layers) {
    ATOLL_TRY(check_id(layer));
    plan.layers.push_back(layer_path(layer));
  }
  auto work = [this, request, plan]() mutable -> Result<Chore::Outcome> {
    ATOLL_ASSIGN(image::Staging staging, image::Staging::open(kDataDir, request.staging));
    constexpr int kNew = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    UniqueFd file(openat(staging.dir(), wire::kArchiveFile, kNew, 0600));
    if (!file.valid()) return fail_errno("create", wire::kArchiveFile);
    if (fchown(file.get(), config_.server_uid, config_.server_gid) != 0) return fail_errno("chown");
    plan.file = file.get();
    ATOLL_TRY(image::export_layers(plan));
    return outcome(wire::LauncherDone{});
  };
  enqueue({.id = id, .slot = "", .work = work, .done = {}, .seconds = kLongSeconds});
  return {};
}

// The server sees to it that nobody imports meanwhile.
Result<void> Launcher::on_collect(uint32_t id, std::string_view payload) {
  ATOLL_ASSIGN(auto request, wire::decode<wire::CollectRequest>(payload));
  auto work = [this, request]() -> Result<Chore::Outcome> {
    ATOLL_ASSIGN(image::LayerStore store, open_layers());
    std::set<std::string> keep(request.keep.begin(), request.keep.end());
    ATOLL_TRY(store.retire_all_but(keep));
    for (const std::string& state : list_directories(pool_.states(), Names::Plain)) {
      if (!state.starts_with(wire::kLayerPrefix) || keep.contains(state)) continue;
      ATOLL_TRY(discard_state(state));
      failpoint("collect.discarded");
    }
    return outcome(wire::LauncherDone{});
  };
  enqueue({.id = id, .slot = "", .work = work, .done = {}});
  return {};
}

void Launcher::on_sweep(uint32_t id) {
  auto work = []() -> Result<Chore::Outcome> {
    ATOLL_ASSIGN(image::LayerStore store, open_layers());
    ATOLL_TRY(store.lock());
    return outcome(wire::LauncherDone{});
  };
  enqueue({.id = id, .slot = "", .work = work, .done = {}, .seconds = kLongSeconds});
}

}  // namespace atl::launcher
