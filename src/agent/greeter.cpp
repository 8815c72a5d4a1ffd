#include "agent/greeter.h"

#include "agent/agent.h"
#include "agent/attachment.h"
#include "agent/control_session.h"
#include "agent/lent_sockets.h"

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
    case wire::AgentType::Suspend:
      return suspend_agent();
    case wire::AgentType::Resume:
      return resume_agent();
    default:
      return refuse(Error(ErrorCode::InvalidArgument, "unexpected first frame"));
  }
}

// With the descriptors that come along: those of Resume.
ssize_t Greeter::receive(char* space, size_t size) {
  return receive_with_sockets(fd_.get(), {space, size}, received_);
}

void Greeter::suspend_agent() {
  auto sockets = agent_.suspend(this);
  if (!sockets) return refuse(sockets.error());
  std::string reply;
  auto count = static_cast<uint32_t>(sockets->size());
  wire::append_frame(reply, 0, wire::Suspended{.connections = count});
  send_with_sockets(fd_.get(), reply, *sockets);
  close();
  agent_.drop(this);
}

void Greeter::resume_agent() {
  agent_.resume(std::move(received_));
  send(0, wire::Done{});
  close();
  agent_.drop(this);
}

void Greeter::on_closed() { agent_.drop(this); }

}  // namespace atl::agent
