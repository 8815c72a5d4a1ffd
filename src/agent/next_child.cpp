#include "agent/next_child.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "agent/event_loop.h"

namespace atl::agent {

static constexpr uint64_t kKeptMs = 1000;

tl::expected<PreparedChild, SpawnFailure> NextChild::prepare(Profile profile) {
  PreparedChild child{.launch = std::make_unique<Launch>(), .cgroup = cgroups_.acquire()};
  auto pid = child.launch->prepare(profile, child.cgroup != nullptr ? child.cgroup->fd() : -1);
  if (pid) return child;
  cgroups_.release(std::move(child.cgroup));
  return tl::make_unexpected(pid.error());
}

tl::expected<PreparedChild, SpawnFailure> NextChild::take(Profile profile) {
  if (waiting_.launch != nullptr) return std::exchange(waiting_, {});
  return prepare(profile);
}

void NextChild::restock(Profile profile) {
  expires_ms_ = monotonic_ms() + kKeptMs;
  if (waiting_.launch != nullptr) return;
  auto child = prepare(profile);
  if (child) waiting_ = std::move(*child);  // else the next command makes its own, or says why not
}

void NextChild::command_ended(Profile profile) {
  uint64_t now = monotonic_ms();
  // Many a sandbox is made for one command: a child for a second would only have to be killed.
  bool in_a_row = now < last_ended_ms_ + kKeptMs;
  last_ended_ms_ = now;
  if (in_a_row) restock(profile);
}

void NextChild::enforce_deadline(uint64_t now_ms) {
  if (waiting_.launch == nullptr || now_ms < expires_ms_) return;
  waiting_.launch->dismiss();
  leaving_.push_back(std::exchange(waiting_, {}));
}

bool NextChild::send_away() {
  if (waiting_.launch != nullptr) {
    waiting_.launch->dismiss();
    leaving_.push_back(std::exchange(waiting_, {}));
  }
  last_ended_ms_ = 0;  // and none is made after the command that is ending right now
  return leaving_.empty();
}

bool NextChild::settle(pid_t pid, bool stopped) {
  if (waiting_.launch != nullptr && waiting_.launch->pid() == pid) {
    leaving_.push_back(std::exchange(waiting_, {}));
  }
  auto gone = std::find_if(leaving_.begin(), leaving_.end(),
                           [&](const PreparedChild& child) { return child.launch->pid() == pid; });
  if (gone == leaving_.end()) return false;
  if (stopped) {
    ::kill(pid, SIGKILL);  // it would never become anybody's command
    return true;
  }
  cgroups_.release(std::move(gone->cgroup));
  leaving_.erase(gone);
  return true;
}

}  // namespace atl::agent
