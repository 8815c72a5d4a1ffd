// How the agent stands aside for a checkpoint: nothing of it may reach outside while one is taken.
#include <sys/prctl.h>

#include <algorithm>

#include "agent/agent.h"

namespace atl::agent {

// Longer than any checkpoint takes; for a launcher that died meanwhile and was not replaced.
static constexpr uint64_t kSuspendedMs = 600'000;
// For the launcher's word after the signal, which it has sent before it.
static constexpr uint64_t kLentMs = 2'000;

static Error busy(const char* what) {
  return Error(ErrorCode::Unavailable,
               std::string(what) + " under way; try again when it has ended");
}

Result<std::vector<UniqueFd>> Agent::suspend(const Connection* but) {
  if (!configured_) return fail(ErrorCode::InvalidState, "the sandbox is not set up yet");
  settle_started();
  bool alone = next_child_.send_away();
  if (!file_workers_.empty()) return fail(busy("a file operation or watch is"));
  if (!alone || !starting_.empty()) return fail(busy("the start of a command is"));
  if (connections_.size() > wire::kMaxSuspended) {
    return fail(ErrorCode::ResourceExhausted, "too many connections to the sandbox; close some");
  }
  if (!lent_.empty()) resume({});  // of a launcher that died: nobody will bring them back
  loop_.remove(listener_.get(), acceptor_.get());
  cgroups_.close_all();
  for (const auto& process : processes_) {
    if (process->cgroup != nullptr) process->cgroup->close();
  }
  std::vector<UniqueFd> sockets;
  for (const auto& connection : connections_) {
    if (connection.get() == but) continue;
    lent_.push_back(connection.get());
    sockets.push_back(connection->lend_socket());
  }
  // criu looks at us as root of our user namespace. Commands cannot meanwhile: they lack a
  // capability that we have.
  prctl(PR_SET_DUMPABLE, 1);
  suspended_until_ms_ = monotonic_ms() + kSuspendedMs;
  return sockets;
}

void Agent::wake() {
  if (suspended_until_ms_ == 0) return;  // anybody inside may send that signal
  suspended_until_ms_ = 0;
  prctl(PR_SET_DUMPABLE, 0);
  if (!lent_.empty()) lent_until_ms_ = monotonic_ms() + kLentMs;
  loop_.add(listener_.get(), EPOLLIN, acceptor_.get());
}

void Agent::give_up_waiting(uint64_t now_ms) {
  if (suspended_until_ms_ != 0 && now_ms >= suspended_until_ms_) wake();
  if (lent_until_ms_ != 0 && now_ms >= lent_until_ms_) resume({});
}

void Agent::resume(std::vector<UniqueFd> sockets) {
  lent_until_ms_ = 0;
  auto lent = std::exchange(lent_, {});
  bool returned = sockets.size() == lent.size();
  for (size_t i = 0; i < lent.size(); i++) {
    if (returned && sockets[i].valid()) {
      lent[i]->take_socket(std::move(sockets[i]));
    } else {
      lent[i]->abandon();
    }
  }
}

}  // namespace atl::agent
