#include "agent/greeter.h"

#include "agent/agent.h"
#include "agent/attachment.h"
#include "agent/control_session.h"

namespace atl::agent {

Greeter::Greeter(Agent& agent, UniqueFd fd)
    : Connection(agent.loop(), std::move(fd), {}), agent_(agent) {}

UniqueFd Greeter::hand_over() {
  loop_.remove(fd_.get(), this);
  UniqueFd fd = std::move(fd_);
  agent_.drop(this);
  return fd;
}

void Greeter::refuse(const Error& error) {
  send_error(0, error);
  close();
  agent_.drop(this);
}

void Greeter::become_attachment(std::string_view payload) {
  auto request = wire::decode<wire::AttachRequest>(payload);
  if (!request) return refuse(request.error());
  auto process = agent_.find(request->pid);
  if (process == nullptr) {
    return refuse(Error(ErrorCode::NotFound, "no process " + std::to_string(request->pid)));
  }
  UniqueFd fd = hand_over();
  agent_.adopt(std::make_unique<Attachment>(agent_, std::move(fd), std::move(in_),
                                            std::move(process), *request));
}

void Greeter::become_file_worker(std::string_view payload) {
  auto request = wire::decode<wire::FileRequest>(payload);
  if (!request) return refuse(request.error());
  UniqueFd fd = hand_over();
  agent_.serve_files(std::move(fd), std::move(in_), *request);
}

void Greeter::on_frame(const wire::Frame& frame) {
  switch (static_cast<wire::AgentType>(frame.type)) {
    case wire::AgentType::ControlHello: {
      UniqueFd fd = hand_over();
      agent_.adopt(std::make_unique<ControlSession>(agent_, std::move(fd), std::move(in_)));
      return;
    }
    case wire::AgentType::AttachRequest:
      return become_attachment(frame.payload);
    case wire::AgentType::FileRequest:
      return become_file_worker(frame.payload);
    default:
      return refuse(Error(ErrorCode::InvalidArgument, "unexpected first frame"));
  }
}

void Greeter::on_closed() { agent_.drop(this); }

}  // namespace atl::agent
