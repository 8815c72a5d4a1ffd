// Code in persistent kernels: every context (a session and a language) of every sandbox has one,
// which keeps what cells define. A kernel is a process of its sandbox: it ends with it, and a
// server that comes later finds it by its label.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "code/cell_run.h"
#include "http/async_mutex.h"

namespace atl::code {

struct ContextInfo {
  ContextId id;
  std::string cwd;
  bool running = false;
};

struct RunOrder {
  ContextId context;
  Cell cell;
  std::chrono::milliseconds timeout{60'000};
  // Of a kernel that has yet to be started.
  std::string cwd;
  std::string user;
  bool must_exist = false;  // NotFound rather than a new context
};

// What lets a client that goes away end what it has begun.
class Cancellation {
 public:
  void cancel() {
    cancelled_ = true;
    if (stopper_ != nullptr) stopper_->stop(Stopper::Reason::Unwanted);
  }
  bool cancelled() const { return cancelled_; }
  void follow(std::shared_ptr<Stopper> stopper) { stopper_ = std::move(stopper); }

 private:
  std::shared_ptr<Stopper> stopper_;
  bool cancelled_ = false;
};

class Interpreter : public std::enable_shared_from_this<Interpreter> {
 public:
  static constexpr size_t kMostContexts = 32;  // of a sandbox

  // Cells of one context run one after another.
  Task<Result<Outcome>> run(SessionPtr session, RunOrder order, Listener& listener,
                            std::shared_ptr<Cancellation> cancellation);

  struct NewContext {
    Language language = Language::Python;
    std::string cwd;
    std::string user;
    std::string session;  // empty: one that nobody has
  };
  Task<Result<ContextInfo>> create(SessionPtr session, NewContext wanted);
  Task<Result<std::vector<ContextInfo>>> list(SessionPtr session);
  Task<Result<ContextInfo>> find(SessionPtr session, ContextId id);
  Task<Result<void>> remove(SessionPtr session, ContextId id);
  // A new kernel with the same place and name.
  Task<Result<void>> restart(SessionPtr session, ContextId id);
  // Another context whose kernel begins as this one is now. Only Python's can be branched.
  Task<Result<ContextInfo>> fork(SessionPtr session, ContextId id, std::string new_session);

 private:
  struct Slot {
    Slot(boost::asio::any_io_executor executor, ContextId named)
        : id(std::move(named)), turn(std::move(executor)) {}
    ContextId id;
    std::string cwd;
    std::string user;
    int32_t pid = 0;  // 0: nothing runs
    std::string root;
    http::AsyncMutex turn;  // one cell at a time
    bool removed = false;
  };
  using SlotPtr = std::shared_ptr<Slot>;
  struct Box {
    std::weak_ptr<SandboxSession> session;
    std::map<ContextId, SlotPtr> slots;
  };

  // The sandbox as it is: with the kernels that run in it, whoever started them.
  Task<Result<Box*>> look_into(const SessionPtr& session);
  Task<Result<SlotPtr>> slot_of(const SessionPtr& session, ContextId id, bool must_exist);
  Task<Result<SlotPtr>> add_slot(const SessionPtr& session, ContextId id);
  // Where a kernel of its name runs that this server has lost sight of, that one is its.
  Task<Result<void>> find_again(const SessionPtr& session, Slot& slot);
  // Where it runs: a process that lives, or a new one.
  Task<Result<CellOrder>> prepare(const SessionPtr& session, Slot& slot);
  Task<Result<int32_t>> branch(SessionPtr session, SlotPtr parent, ContextId id);
  Task<Result<void>> end(const SessionPtr& session, Slot& slot);
  static KernelProcess process_of(const Slot& slot) {
    return {.id = slot.id, .pid = slot.pid, .root = slot.root};
  }
  static ContextInfo info_of(const Slot& slot) {
    return {.id = slot.id, .cwd = slot.cwd, .running = slot.pid != 0};
  }

  std::map<std::string, Box> boxes_;  // by sandbox
};

}  // namespace atl::code
