#include "agent/control_session.h"

#include <errno.h>
#include <string.h>

#include "agent/agent.h"

namespace atl::agent {

// Output up to this size travels inside the reply; more is read through an attachment.
static constexpr uint64_t kInlineOutput = 256u << 10;

ControlSession::ControlSession(Agent& agent, UniqueFd fd, wire::FrameBuffer pending)
    : Connection(agent.loop(), std::move(fd), std::move(pending)), agent_(agent) {
  send(0, wire::ControlReady{.configured = agent_.configured()});
}

void ControlSession::on_frame(const wire::Frame& frame) {
  switch (static_cast<wire::AgentType>(frame.type)) {
    case wire::AgentType::ExecRequest:
      return exec(frame.id, frame.payload);
    case wire::AgentType::Configure:
      return configure(frame.id, frame.payload);
    case wire::AgentType::SignalRequest:
      return signal(frame.id, frame.payload);
    case wire::AgentType::ProcessListRequest:
      return list(frame.id, frame.payload);
    case wire::AgentType::WaitRequest:
      return wait(frame.id, frame.payload);
    default:
      return send_error(frame.id, Error(ErrorCode::NotSupported, "unknown request"));
  }
}

void ControlSession::configure(uint32_t id, std::string_view payload) {
  auto request = wire::decode<wire::Configure>(payload);
  if (!request) return send_error(id, request.error());
  auto result = agent_.configure(*request);
  if (!result) return send_error(id, result.error());
  send(id, wire::Done{});
}

void ControlSession::exec(uint32_t id, std::string_view payload) {
  auto request = wire::decode<wire::ExecRequest>(payload);
  if (!request) return send_error(id, request.error());
  auto process = agent_.start(*request);
  if (!process) return send_error(id, process.error());
  if (!request->wait) {
    wire::ExecReply reply;
    reply.process = (*process)->info;
    reply.output_inline = false;
    return send(id, reply);
  }
  await_end(*process, id, Waiter::Reply::Exec);
}

// A command that cannot be executed ends as a shell would have it; anything else that kept it from
// starting is an error of the request.
void ControlSession::reply_not_started(uint32_t id, const Process& process) {
  const Error& error = *process.start_error;
  if (error.field() != "command") return send_error(id, error);
  wire::ExecReply reply;
  bool missing = error.sys_errno() == ENOENT || error.sys_errno() == ENOTDIR;
  reply.process = process.info;
  reply.process.exit_code = missing ? 127 : 126;
  reply.stderr_data = "atoll: " + process.program + ": " +
                      (missing ? "command not found" : strerror(error.sys_errno())) + "\n";
  send(id, reply);
}

void ControlSession::reply_exec(uint32_t id, const Process& process) {
  if (process.start_error) return reply_not_started(id, process);
  wire::ExecReply reply;
  reply.process = process.info;
  reply.duration_us = monotonic_us() - process.started_us;
  uint64_t total = process.info.stdout_bytes + process.info.stderr_bytes;
  reply.output_inline = total <= kInlineOutput;
  if (reply.output_inline) {
    process.stdout_pipe.log.append_all_to(reply.stdout_data);
    process.stderr_pipe.log.append_all_to(reply.stderr_data);
  }
  send(id, reply);
}

void ControlSession::signal(uint32_t id, std::string_view payload) {
  auto request = wire::decode<wire::SignalRequest>(payload);
  if (!request) return send_error(id, request.error());
  auto result = agent_.signal(*request);
  if (!result) return send_error(id, result.error());
  send(id, wire::Done{});
}

void ControlSession::list(uint32_t id, std::string_view payload) {
  auto request = wire::decode<wire::ProcessListRequest>(payload);
  if (!request) return send_error(id, request.error());
  wire::ProcessList reply;
  for (const auto& process : agent_.processes()) {
    if (request->pid != 0 && process->info.pid != request->pid) continue;
    reply.processes.push_back(process->info);
    reply.processes.back().stdout_bytes = process->stdout_pipe.log.end();
    reply.processes.back().stderr_bytes = process->stderr_pipe.log.end();
  }
  if (request->pid != 0 && reply.processes.empty()) {
    return send_error(id, Error(ErrorCode::NotFound, "no process " + std::to_string(request->pid)));
  }
  send(id, reply);
}

void ControlSession::wait(uint32_t id, std::string_view payload) {
  auto request = wire::decode<wire::WaitRequest>(payload);
  if (!request) return send_error(id, request.error());
  auto process = agent_.find(request->pid);
  if (process == nullptr) {
    return send_error(id, Error(ErrorCode::NotFound, "no process " + std::to_string(request->pid)));
  }
  if (!process->info.running) return send(id, wire::WaitReply{.process = process->info});
  await_end(process, id, Waiter::Reply::Wait);
}

void ControlSession::await_end(std::shared_ptr<Process> process, uint32_t id, Waiter::Reply reply) {
  waiters_.push_back(std::make_unique<Waiter>(*this, std::move(process), id, reply));
}

void ControlSession::forget(Waiter* waiter) {
  std::erase_if(waiters_, [&](const auto& held) { return held.get() == waiter; });
}

void ControlSession::on_closed() { agent_.drop(this); }

ControlSession::Waiter::Waiter(ControlSession& session, std::shared_ptr<Process> process,
                               uint32_t id, Reply reply)
    : session_(session), process_(std::move(process)), id_(id), reply_(reply) {
  process_->observe(this);
}

void ControlSession::Waiter::on_exit() {
  if (reply_ == Reply::Exec) {
    session_.reply_exec(id_, *process_);
  } else {
    session_.send(id_, wire::WaitReply{.process = process_->info});
  }
  session_.forget(this);  // destroys this object
}

}  // namespace atl::agent
