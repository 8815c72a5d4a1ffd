#include <algorithm>
#include <boost/json.hpp>

#include "client/client_impl.h"
#include "client/decode.h"
#include "client/streams.h"
#include "http/client_websocket.h"
#include "http/target.h"

namespace atl {
namespace {

namespace json = boost::json;
using client::parse_answer;
using client::runtime_target;

constexpr std::chrono::milliseconds kShortestWait{1};
constexpr std::chrono::milliseconds kLongestWait{60'000};

json::object to_json(const ExecRequest& request) {
  json::object body;
  if (!request.argv.empty()) {
    body["executable"] = request.argv[0];
    json::array rest;
    for (size_t i = 1; i < request.argv.size(); i++) rest.emplace_back(request.argv[i]);
    body["args"] = std::move(rest);
  } else {
    body["command"] = request.shell;
  }
  if (!request.env.empty()) {
    json::object env;
    for (const auto& [key, value] : request.env) env[key] = value;
    body["env"] = std::move(env);
  }
  if (!request.cwd.empty()) body["cwd"] = request.cwd;
  if (!request.user.empty()) body["user"] = request.user;
  if (request.timeout.count() != 0) {
    body["timeoutMs"] = static_cast<int64_t>(request.timeout.count());
  }
  return body;
}

std::string process_target(std::string_view sandbox, int32_t pid, std::string_view rest = {}) {
  return runtime_target(sandbox, "/process/" + std::to_string(pid)) + std::string(rest);
}

std::string offsets_query(const OutputOffsets& offsets) {
  return "stdoutOffset=" + std::to_string(offsets.stdout_offset) +
         "&stderrOffset=" + std::to_string(offsets.stderr_offset);
}

Result<ProcessInfo> process_from(Result<std::string> answer) {
  if (!answer) return tl::unexpected(std::move(answer).error());
  ATOLL_ASSIGN(json::value value, parse_answer(*answer));
  return client::to_process(client::unwrap(value));
}

}  // namespace

Result<ExecResult> Client::exec(std::string_view sandbox, const ExecRequest& request) {
  std::string body = json::serialize(to_json(request));
  ATOLL_ASSIGN(
      std::string answer,
      impl_->call(impl_->patient, "POST", runtime_target(sandbox, "/terminals/commands"), body));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  return client::to_exec_result(client::member(value, "result"));
}

Result<ProcessInfo> Client::spawn(std::string_view sandbox, const SpawnRequest& request) {
  json::object body = to_json(request);
  if (request.stdin_open) body["stdin"] = true;
  if (request.pty) {
    body["pty"] = true;
    body["cols"] = static_cast<int64_t>(request.cols);
    body["rows"] = static_cast<int64_t>(request.rows);
  }
  return process_from(impl_->call(impl_->quick, "POST", runtime_target(sandbox, "/process/spawn"),
                                  json::serialize(body)));
}

Result<std::vector<ProcessInfo>> Client::processes(std::string_view sandbox) {
  ATOLL_ASSIGN(std::string answer,
               impl_->call(impl_->quick, "GET", runtime_target(sandbox, "/process"), {}));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  return client::list_of(client::unwrap(value), client::to_process);
}

Result<ProcessInfo> Client::process(std::string_view sandbox, int32_t pid) {
  return process_from(impl_->call(impl_->quick, "GET", process_target(sandbox, pid), {}));
}

// The server holds an answer back for minutes, not for ever, so a long wait is several.
Result<ProcessInfo> Client::wait(std::string_view sandbox, int32_t pid,
                                 std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  auto deadline = Clock::now() + timeout;
  bool endless = timeout.count() == 0;
  while (true) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    auto step = endless ? kLongestWait : std::clamp(left, kShortestWait, kLongestWait);
    std::string query = "/wait?timeoutMs=" + std::to_string(step.count());
    auto process =
        process_from(impl_->call(impl_->patient, "GET", process_target(sandbox, pid, query), {}));
    bool again = !process && process.error().code() == ErrorCode::Timeout;
    if (!again || (!endless && Clock::now() >= deadline)) return process;
  }
}

Result<void> Client::kill(std::string_view sandbox, int32_t pid, std::string_view signal,
                          KillScope scope) {
  json::object body;
  body["signal"] = signal;
  body["tree"] = scope == KillScope::Tree;
  ATOLL_TRY(
      impl_->call(impl_->quick, "DELETE", process_target(sandbox, pid), json::serialize(body)));
  return {};
}

Result<Attachment> Client::attach(std::string_view sandbox, int32_t pid,
                                  const OutputOffsets& offsets, AttachInput input) {
  std::string target = process_target(sandbox, pid, "/attach?" + offsets_query(offsets));
  if (input == AttachInput::Resume) target += "&resumeInput=true";
  ATOLL_ASSIGN(http::ClientWebSocket socket, impl_->patient.websocket(target, impl_->headers));
  return Attachment(std::make_unique<Attachment::State>(std::move(socket)));
}

Result<OutputReader> Client::output(std::string_view sandbox, int32_t pid,
                                    const OutputRequest& request) {
  std::string target = process_target(sandbox, pid, "/output?stream=");
  target.append(request.stream == Stream::Stderr ? "stderr" : "stdout");
  target.append(request.follow ? "&follow=true" : "&follow=false");
  target.append("&offset=").append(std::to_string(request.offset));
  ATOLL_ASSIGN(http::ResponseStream response, impl_->open(target));
  return OutputReader(std::make_unique<OutputReader::State>(std::move(response)));
}

Result<LogReader> Client::logs(std::string_view sandbox, int32_t pid, const LogRequest& request) {
  std::string target = process_target(sandbox, pid, "/logs?");
  target.append(request.follow ? "follow=true&" : "follow=false&");
  target.append(offsets_query(request.offsets));
  ATOLL_ASSIGN(http::ResponseStream response,
               impl_->open(target, {{"Accept", "text/event-stream"}}));
  return LogReader(std::make_unique<LogReader::State>(std::move(response)));
}

}  // namespace atl
