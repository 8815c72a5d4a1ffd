// The verbs that act on sandboxes already built.
#include <fcntl.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <algorithm>

#include "base/failpoint.h"
#include "launcher/checks.h"
#include "launcher/launcher.h"
#include "launcher/survivors.h"
#include "os/fd_passing.h"
#include "os/file.h"

namespace atl::launcher {

Result<void> Launcher::on_limits(uint32_t id, std::string_view payload) {
  ATOLL_ASSIGN(auto request, wire::decode<wire::LimitsRequest>(payload));
  ATOLL_ASSIGN(Slot * slot, find_live(request.slot));
  ATOLL_TRY(cgroups_.set_limits(slot->id, cgroup_limits(request.limits)));
  ATOLL_TRY(check_id(request.sandbox));
  ATOLL_ASSIGN(UniqueFd tree, os::open_dir_at(pool_.sandboxes(), request.sandbox.c_str()));
  ATOLL_TRY(pool_.limit_tree(tree.get(), request.limits.disk_bytes));
  send(id, wire::LauncherDone{});
  return {};
}

Result<void> Launcher::on_freeze(uint32_t id, std::string_view payload) {
  ATOLL_ASSIGN(auto request, wire::decode<wire::FreezeRequest>(payload));
  ATOLL_ASSIGN(Slot * slot, find_live(request.slot));
  ATOLL_TRY(cgroups_.freeze(slot->id, request.frozen));
  slot->frozen = request.frozen;
  send(id, wire::LauncherDone{});
  return {};
}

Result<void> Launcher::on_stop(uint32_t id, std::string_view payload) {
  ATOLL_ASSIGN(auto request, wire::decode<wire::StopRequest>(payload));
  auto it = slots_.find(request.slot);
  if (it == slots_.end()) {  // it has ended already, which is what was asked for
    send(id, wire::LauncherDone{});
    return {};
  }
  it->second.stop_request = id;
  kill_slot(it->second);
  return {};
}

Result<void> Launcher::on_destroy(uint32_t id, std::string_view payload) {
  ATOLL_ASSIGN(auto request, wire::decode<wire::DestroyRequest>(payload));
  auto it = slots_.find(request.slot);
  if (it != slots_.end()) {
    kill_slot(it->second);
  }
  failpoint("destroy.killed");
  if (!request.sandbox.empty()) {
    ATOLL_TRY(check_id(request.sandbox));
    ATOLL_TRY(trash_.take(pool_.sandboxes(), request.sandbox));
    failpoint("destroy.trashed");
  }
  send(id, wire::LauncherDone{});
  return {};
}

Result<void> Launcher::on_discard(uint32_t id, std::string_view payload) {
  ATOLL_ASSIGN(auto request, wire::decode<wire::DiscardRequest>(payload));
  ATOLL_TRY(check_id(request.sandbox));
  ATOLL_TRY(trash_.take(pool_.sandboxes(), request.sandbox));
  send(id, wire::LauncherDone{});
  return {};
}

Result<void> Launcher::on_reserve(uint32_t id, std::string_view payload) {
  ATOLL_ASSIGN(auto request, wire::decode<wire::ReserveRequest>(payload));
  reserve_ = std::min(request.slots, 256u);
  fill_reserve();
  send(id, wire::LauncherDone{});
  return {};
}

Result<void> Launcher::on_usage(uint32_t id, std::string_view payload) {
  ATOLL_ASSIGN(auto request, wire::decode<wire::UsageRequest>(payload));
  ATOLL_TRY(check_id(request.sandbox));
  ATOLL_ASSIGN(Slot * slot, find_live(request.slot));
  ATOLL_ASSIGN(os::CgroupUsage usage, cgroups_.usage(slot->id));
  send(id, wire::UsageReply{.usage = {.memory_bytes = usage.memory_bytes,
                                      .memory_peak_bytes = usage.memory_peak_bytes,
                                      .cpu_us = usage.cpu_us,
                                      .pids = usage.pids,
                                      .oom_kills = usage.oom_kills},
                            .cache_bytes = usage.cache_bytes,
                            .disk_bytes = pool_.size_of(pool_.sandboxes(), request.sandbox)});
  return {};
}

Result<void> Launcher::on_import(uint32_t id, std::string_view payload) {
  constexpr size_t kMaxImports = 4;
  ATOLL_ASSIGN(auto request, wire::decode<wire::ImportRequest>(payload));
  ATOLL_TRY(check_id(request.staging));
  if (importers_.size() >= kMaxImports) {
    return fail(ErrorCode::ResourceExhausted, "other imports are under way; try again later");
  }
  ATOLL_ASSIGN(Importer importer,
               Importer::start(id, std::move(request), {config_.server_uid, config_.server_gid}));
  int fd = importer.fd();
  importers_.emplace(fd, std::move(importer));
  watch(fd, [this, fd] { import_advanced(fd); });
  return {};
}

// What it says is for the server; its last word ends it.
void Launcher::import_advanced(int fd) {
  auto it = importers_.find(fd);
  auto frame = it->second.next_frame();
  uint16_t type = 0;
  if (frame && frame->size() >= wire::kHeaderBytes) {
    type = wire::parse_header(frame->data()).type;
    send_bytes(*frame);
  } else {
    send_error(it->second.request_id(), Error(ErrorCode::Internal, "the importer has died"));
  }
  if (type == static_cast<uint16_t>(wire::LauncherType::ImportProgress)) return;
  unwatch(fd);
  importers_.erase(it);
}

Result<void> Launcher::on_gate(uint32_t id, std::string_view payload) {
  ATOLL_ASSIGN(auto request, wire::decode<wire::GateRequest>(payload));
  ATOLL_ASSIGN(Slot * slot, find_live(request.slot));
  if (!slot->gate.valid()) {
    ATOLL_ASSIGN(slot->gate, gates_.open(slot->id, slot->pidfd.get()));
  }
  send(id, wire::LauncherDone{});
  return {};
}

Result<void> Launcher::on_dial(uint32_t id, std::string_view payload) {
  ATOLL_ASSIGN(auto request, wire::decode<wire::DialRequest>(payload));
  ATOLL_ASSIGN(Slot * slot, find_live(request.slot));
  ATOLL_ASSIGN(os::InnerSockets sockets, gates_.dialable(slot->pidfd.get()));
  std::string bytes;
  wire::append_frame(bytes, id, wire::Dialable{});
  return os::send_with_fds(config_.server.get(), bytes, {sockets[0].get(), sockets[1].get()});
}

Result<void> Launcher::on_status(uint32_t id, std::string_view payload) {
  constexpr size_t kNamesAtOnce = 1000;
  ATOLL_ASSIGN(auto request, wire::decode<wire::StatusRequest>(payload));
  wire::Status status;
  size_t seen = 0, end = request.from + kNamesAtOnce;
  auto list = [&](int dir, std::vector<std::string>& into) {
    std::vector<std::string> names = list_directories(dir, Names::Plain);
    std::sort(names.begin(), names.end());
    for (std::string& name : names) {
      if (seen >= request.from && seen < end) into.push_back(std::move(name));
      seen++;
    }
  };
  for (const auto& [name, slot] : slots_) {
    if (slot.state == Slot::State::Live) status.slots.push_back({name, slot.pid});
  }
  list(pool_.sandboxes(), status.sandboxes);
  list(pool_.states(), status.states);
  list(images_dir_.get(), status.images);
  status.more = seen > end;
  if (!pool_.lacking().empty()) {
    status.degraded.push_back("no snapshots, forks or disk limits: " + pool_.lacking());
  }
  if (!gates_.degraded().empty()) status.degraded.push_back(gates_.degraded());
  status.cgroup_mode = to_string(cgroups_.mode());
  if (!cgroups_.has_unified())
    status.degraded.push_back("cgroup v2 is not mounted: no freeze, no per-command kill");
  send(id, status);
  return {};
}

Result<void> Launcher::on_storage(uint32_t id, std::string_view payload) {
  ATOLL_ASSIGN(auto request, wire::decode<wire::StorageRequest>(payload));
  if (request.grow_to != 0) ATOLL_TRY(pool_.grow(request.grow_to));
  ATOLL_ASSIGN(storage::StatePool::Room room, pool_.room());
  struct statvfs host {};
  if (fstatvfs(layers_dir_.get(), &host) != 0) return fail_errno("statvfs", "the data directory");
  send(id, wire::StorageReply{.bytes = room.bytes,
                              .free_bytes = room.free_bytes,
                              .host_free_bytes = uint64_t{host.f_bavail} * host.f_frsize,
                              .growable = pool_.growable(),
                              .lacking = pool_.lacking()});
  return {};
}

}  // namespace atl::launcher
