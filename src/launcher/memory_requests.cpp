// The verbs that keep sandboxes' processes and bring them back.
#include <fcntl.h>
#include <openssl/sha.h>
#include <signal.h>
#include <string.h>

#include "criu/images.h"
#include "criu/program.h"
#include "launcher/checks.h"
#include "launcher/launcher.h"
#include "launcher/memory_revive.h"
#include "launcher/survivors.h"
#include "os/file.h"
#include "os/id_map.h"
#include "os/remove_tree.h"
#include "os/syscalls.h"
#include "wire/agent_messages.h"

namespace atl::launcher {
namespace {

constexpr unsigned kMemorySeconds = 300;
constexpr unsigned kProbeSeconds = 20;
constexpr const char* kCheckLog = "check.log";
constexpr uint32_t kLeastMajor = 4, kLeastMinor = 2;

template <class Message>
Chore::Outcome outcome(const Message& message) {
  Chore::Outcome result;
  wire::append_frame(result.bytes, 0, message);
  return result;
}

std::string version_text(const criu::Response& version) {
  std::string text = std::to_string(version.major) + "." + std::to_string(version.minor);
  return version.sublevel == 0 ? text : text + "." + std::to_string(version.sublevel);
}

}  // namespace

// Half-written images, and what a revival needed only while it lasted.
void Launcher::clear_unfinished_images() {
  for (const std::string& name : list_directories(images_dir_.get(), Names::Hidden)) {
    os::remove_tree(images_dir_.get(), name.c_str());
  }
}

void Launcher::set_agent_digest() {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(config_.agent.data()), config_.agent.size(),
         digest);
  agent_digest_.assign(reinterpret_cast<char*>(digest), sizeof digest);
}

Result<void> Launcher::check_memory_support() const {
  if (!workshop_.lacking().empty()) return fail(ErrorCode::NotSupported, workshop_.lacking());
  if (!cgroups_.has_unified()) {
    return fail(ErrorCode::NotSupported, "memory checkpoints need cgroup v2 to be mounted");
  }
  return {};
}

Result<void> Launcher::on_checkpoint(uint32_t id, std::string_view payload) {
  ATOLL_ASSIGN(auto request, wire::decode<wire::CheckpointRequest>(payload));
  ATOLL_TRY(check_memory_support());
  ATOLL_TRY(check_id(request.sandbox));
  ATOLL_TRY(check_id(request.image));
  if (!request.state.empty()) ATOLL_TRY(check_id(request.state));
  ATOLL_ASSIGN(Slot * slot, find_live(request.slot));
  if (slot->frozen) return fail(ErrorCode::InvalidState, "the sandbox is paused; resume it first");
  auto work = [this, request]() -> Result<Chore::Outcome> {
    ATOLL_ASSIGN(Slot * live, find_live(request.slot));  // it may have waited for its turn
    DumpPlan plan{.workshop = &workshop_,
                  .cgroups = &cgroups_,
                  .pool = &pool_,
                  .sockets_dir = sockets_dir_.get(),
                  .images = images_dir_.get(),
                  .request = request,
                  .pid = live->pid,
                  .pidfd = live->pidfd.get(),
                  .id_base = live->id_base,
                  .agent = agent_digest_};
    ATOLL_ASSIGN(wire::Kept kept, dump_memory(plan));
    return outcome(kept);
  };
  auto done = [this, request] {
    auto found = slots_.find(request.slot);
    if (request.end && found != slots_.end()) kill_slot(found->second);
  };
  auto failed = [this, request] {
    os::remove_tree(images_dir_.get(), ("." + request.image).c_str());
    if (!request.state.empty() && pool_.release_state(request.state)) {
      (void)trash_.take(pool_.states(), request.state);
    }
    // Where the child died it has not told the agent to go on.
    auto found = slots_.find(request.slot);
    if (found == slots_.end()) {
      // It ended meanwhile, which was not told: it was about to.
      if (request.end) send(0, wire::Ended{.slot = request.slot, .status = -1});
    } else {
      found->second.leaving = false;
      if (!found->second.frozen) (void)cgroups_.freeze(request.slot, false);
      os::pidfd_send_signal(found->second.pidfd.get(), wire::kWakeSignal);
    }
  };
  slot->leaving = request.end;
  enqueue({.id = id,
           .slot = "",
           .work = work,
           .done = done,
           .failed = failed,
           .name = "atoll-keeper",
           .seconds = kMemorySeconds});
  return {};
}

Result<void> Launcher::on_revive(uint32_t id, std::string_view payload) {
  ATOLL_ASSIGN(auto request, wire::decode<wire::ReviveRequest>(payload));
  ATOLL_TRY(check_memory_support());
  ATOLL_TRY(check_id(request.image));
  ATOLL_TRY(check_id(request.sandbox.sandbox));
  if (request.sandbox.layers.empty()) return fail(ErrorCode::InvalidArgument, "no layers");
  for (const std::string& layer : request.sandbox.layers) ATOLL_TRY(check_id(layer));
  auto plan =
      std::make_shared<RevivePlan>(RevivePlan{.workshop = &workshop_,
                                              .cgroups = &cgroups_,
                                              .pool = &pool_,
                                              .sockets_dir = sockets_dir_.get(),
                                              .layers_dir = layers_dir_.get(),
                                              .images = images_dir_.get(),
                                              .request = std::move(request),
                                              .slot = random_id("s", 15),
                                              .id_base = os::id_block_base(allocate_block()),
                                              .server_uid = config_.server_uid,
                                              .server_gid = config_.server_gid,
                                              .agent = agent_digest_});
  auto work = [plan]() -> Result<Chore::Outcome> {
    int64_t begin = os::monotonic_us();
    ATOLL_ASSIGN(Revived revived, revive(*plan));
    wire::Built built;
    built.slot = plan->slot;
    built.pid = revived.pid;
    built.total_us = static_cast<uint32_t>(os::monotonic_us() - begin);
    Chore::Outcome result = outcome(built);
    result.fds.push_back(std::move(revived.pidfd));
    return result;
  };
  auto take = [this, plan](Chore::Outcome& result) {
    auto built =
        wire::decode<wire::Built>(std::string_view(result.bytes).substr(wire::kHeaderBytes));
    if (built && !result.fds.empty()) {
      add_revived(*plan, built->pid, std::move(result.fds.front()));
    }
  };
  auto failed = [this, plan] {
    (void)cgroups_.kill(plan->slot);
    os::remove_tree(images_dir_.get(), (".revive-" + plan->slot).c_str());
    blocks_in_use_.erase(plan->id_base / os::kIdBlockSize);
    clean_up(plan->slot);
  };
  enqueue({.id = id,
           .slot = "",
           .work = work,
           .done = {},
           .take = take,
           .failed = failed,
           .name = "atoll-reviver",
           .seconds = kMemorySeconds});
  return {};
}

void Launcher::add_revived(const RevivePlan& plan, pid_t pid, UniqueFd pidfd) {
  Slot slot;
  slot.id = plan.slot;
  slot.id_base = plan.id_base;
  slot.pid = pid;
  slot.pidfd = std::move(pidfd);
  slot.state = Slot::State::Live;
  int fd = slot.pidfd.get();
  std::string id = slot.id;
  slots_.emplace(id, std::move(slot));
  watch(fd, [this, id] { slot_ended(id); });
}

Result<void> Launcher::on_forget(uint32_t id, std::string_view payload) {
  ATOLL_ASSIGN(auto request, wire::decode<wire::ForgetRequest>(payload));
  ATOLL_TRY(check_id(request.image));
  std::string doomed = "." + request.image;
  // Out of sight at once; should we die here, the next start removes what is hidden.
  (void)renameat(images_dir_.get(), request.image.c_str(), images_dir_.get(), doomed.c_str());
  auto work = [this, doomed]() -> Result<Chore::Outcome> {
    os::remove_tree(images_dir_.get(), doomed.c_str());
    return outcome(wire::LauncherDone{});
  };
  enqueue({.id = id, .slot = "", .work = work, .done = {}});
  return {};
}

// Asked each time, so that the answer is never older than the question.
Result<void> Launcher::on_criu(uint32_t id) {
  auto work = [this]() -> Result<Chore::Outcome> {
    wire::Criu answer;
    auto probe = [&]() -> Result<void> {
      ATOLL_TRY(check_memory_support());
      ATOLL_TRY(workshop_.enter());
      criu::Request request{.verb = criu::Verb::Version, .log_file = {}, .config_file = {}};
      ATOLL_ASSIGN(auto version, criu::run(workshop_.program(), request, {}, {}));
      answer.version = version_text(version);
      if (std::pair(version.major, version.minor) < std::pair(kLeastMajor, kLeastMinor)) {
        return fail(ErrorCode::NotSupported,
                    "criu " + answer.version + " is too old: 4.2 or newer");
      }
      UniqueFd scratch(open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      request = {.verb = criu::Verb::Check, .images_dir = scratch.get(), .log_file = kCheckLog};
      ATOLL_ASSIGN(auto checked, criu::run(workshop_.program(), request, {}, {}));
      if (checked.success) return {};
      return fail(ErrorCode::NotSupported,
                  "criu does not work here: " + criu::reason_in_log(scratch.get(), kCheckLog));
    };
    auto probed = probe();
    answer.available = probed.has_value();
    if (!probed) answer.reason = probed.error().message();
    return outcome(answer);
  };
  enqueue({.id = id,
           .slot = "",
           .work = work,
           .done = {},
           .take = {},
           .failed = {},
           .name = "atoll-prober",
           .seconds = kProbeSeconds});
  return {};
}

}  // namespace atl::launcher
