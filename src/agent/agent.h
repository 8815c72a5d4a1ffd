// PID 1 of a sandbox. It starts every command, keeps their output and exit codes, and reaps every
// orphan. The server may come and go; nothing here depends on it.
#pragma once

#include <memory>
#include <vector>

#include "agent/cgroup_pool.h"
#include "agent/connection.h"
#include "agent/event_loop.h"
#include "agent/next_child.h"
#include "agent/process.h"
#include "agent/users.h"
#include "wire/file_messages.h"

namespace atl::agent {

class Agent {
 public:
  Agent(UniqueFd listener, UniqueFd cgroup_root);
  [[noreturn]] void run();

  EventLoop& loop() { return loop_; }
  // Takes a connection off the books; it is destroyed once the loop is done with it.
  void drop(Connection* connection);
  void adopt(std::unique_ptr<Connection> connection);

  bool configured() const { return configured_; }
  Result<void> configure(const wire::Configure& request);
  Result<std::shared_ptr<Process>> start(const wire::ExecRequest& request);
  Result<void> signal(const wire::SignalRequest& request);
  std::shared_ptr<Process> find(int32_t pid) const;
  using ProcessList = std::vector<std::shared_ptr<Process>>;
  const ProcessList& processes() const { return processes_; }
  // Runs file operations for this connection in a child process.
  void serve_files(UniqueFd fd, wire::FrameBuffer pending, const wire::FileRequest& first);
  const wire::Configure& settings() const { return settings_; }

  // See wire::Suspend. The sockets of all connections but `but`, or why it cannot be done now.
  Result<std::vector<UniqueFd>> suspend(const Connection* but);
  void resume(std::vector<UniqueFd> sockets);

 private:
  class Acceptor;
  class ChildReaper;

  void accept_all();
  void wake();
  void give_up_waiting(uint64_t now_ms);
  void reap_children();
  bool settle_file_worker(pid_t pid, bool stopped);
  void enforce_deadlines();
  void settle_started();
  uint64_t next_deadline() const;
  void forget_oldest();
  ProcessList::iterator forget(ProcessList::iterator process);
  Result<Account> account_for(const std::string& user) const;
  std::vector<std::string> environment_for(const wire::ExecRequest& request,
                                           const Account& account) const;

  EventLoop loop_;
  UniqueFd listener_;
  UniqueFd signal_fd_;
  UniqueFd null_fd_;
  CgroupPool cgroups_;
  NextChild next_child_{cgroups_};
  std::unique_ptr<Watcher> acceptor_;
  std::unique_ptr<Watcher> reaper_;
  std::vector<std::unique_ptr<Connection>> connections_;
  ProcessList processes_;  // oldest first
  ProcessList starting_;   // whose children may still use our memory
  std::vector<pid_t> file_workers_;
  wire::Configure settings_;
  Account default_account_;
  bool configured_ = false;
  std::vector<Connection*> lent_;    // connections whose sockets are with the launcher
  uint64_t suspended_until_ms_ = 0;  // 0: takes connections
  uint64_t lent_until_ms_ = 0;       // 0: not awake yet, or none are lent
};

}  // namespace atl::agent
