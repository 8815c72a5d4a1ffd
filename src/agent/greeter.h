// A connection whose first frame has not come yet. That frame decides what it becomes.
#pragma once

#include <vector>

#include "agent/connection.h"

namespace atl::agent {

class Agent;

class Greeter : public Connection {
 public:
  Greeter(Agent& agent, UniqueFd fd);

 protected:
  void on_frame(const wire::Frame& frame) override;
  void on_closed() override;
  ssize_t receive(char* space, size_t size) override;

 private:
  void become_attachment(std::string_view payload);
  void become_file_worker(std::string_view payload);
  void suspend_agent();
  void resume_agent();
  // The descriptor leaves this object, which is then dropped.
  UniqueFd hand_over();
  void refuse(const Error& error);

  Agent& agent_;
  std::vector<UniqueFd> received_;
};

}  // namespace atl::agent
