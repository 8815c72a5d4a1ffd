// Requests from the server: start, signal, list, wait. Several may be open at once; each reply
// carries its request's id.
#pragma once

#include <memory>
#include <vector>

#include "agent/connection.h"
#include "agent/process.h"

namespace atl::agent {

class Agent;

class ControlSession : public Connection {
 public:
  ControlSession(Agent& agent, UniqueFd fd, wire::FrameBuffer pending);

 protected:
  void on_frame(const wire::Frame& frame) override;
  void on_closed() override;

 private:
  // Answers one request when a process ends.
  class Waiter : public ProcessObserver {
   public:
    enum class Reply { Exec, Wait };
    Waiter(ControlSession& session, std::shared_ptr<Process> process, uint32_t id, Reply reply);
    ~Waiter() override { process_->forget(this); }
    void on_output() override {}
    void on_exit() override;
    uint64_t backlog() const override { return 0; }

   private:
    ControlSession& session_;
    std::shared_ptr<Process> process_;
    uint32_t id_;
    Reply reply_;
  };

  void exec(uint32_t id, std::string_view payload);
  void list(uint32_t id, std::string_view payload);
  void wait(uint32_t id, std::string_view payload);
  void configure(uint32_t id, std::string_view payload);
  void signal(uint32_t id, std::string_view payload);
  void reply_exec(uint32_t id, const Process& process);
  void reply_not_started(uint32_t id, const Process& process);
  void await_end(std::shared_ptr<Process> process, uint32_t id, Waiter::Reply reply);
  void forget(Waiter* waiter);

  Agent& agent_;
  std::vector<std::unique_ptr<Waiter>> waiters_;
};

}  // namespace atl::agent
