#include "client/streams.h"

#include <boost/json.hpp>

#include "client/decode.h"

namespace atl {
namespace {

namespace json = boost::json;
using client::parse_answer;
using client::text_of;
using Message = http::ClientWebSocket::Message;

Result<ProcessEvent> to_output(const Message& message) {
  if (message.data.empty()) return fail(ErrorCode::Internal, "empty frame from the server");
  ProcessEvent event;
  event.stream = message.data[0] == 2 ? Stream::Stderr : Stream::Stdout;
  event.data = message.data.substr(1);
  event.bytes = event.data.size();
  return event;
}

// None for what this client does not know.
Result<std::optional<ProcessEvent>> to_event(const Message& message) {
  if (message.binary) return to_output(message);
  ATOLL_ASSIGN(json::value value, parse_answer(message.data));
  std::string type = text_of(value, "type");
  ProcessEvent event;
  if (type == "lost") {
    event.kind = ProcessEvent::Kind::Lost;
    event.stream = client::to_stream(text_of(value, "stream"));
    event.lost = client::number_of(value, "bytes");
    return event;
  }
  if (type == "input") {
    event.kind = ProcessEvent::Kind::Input;
    event.bytes = client::number_of(value, "bytes");
    return event;
  }
  if (type == "error") {
    event.kind = ProcessEvent::Kind::Refused;
    event.data = text_of(value, "message");
    return event;
  }
  if (type != "exit") return std::optional<ProcessEvent>();
  event.kind = ProcessEvent::Kind::Exited;
  event.process = client::to_process(client::member(value, "process"));
  return event;
}

Result<std::optional<SandboxEvent>> to_sandbox_event(const http::Event& sent) {
  ATOLL_ASSIGN(json::value value, parse_answer(sent.data));
  SandboxEvent event;
  event.id = sent.id;
  event.type = sent.event;
  event.at = text_of(value, "at");
  event.sandbox_id = text_of(value, "sandboxId");
  event.sandbox_name = text_of(value, "name");
  event.reason = text_of(value, "reason");
  if (event.reason.empty()) event.reason = text_of(value, "message");
  event.json = sent.data;
  return event;
}

Result<std::optional<ProcessEvent>> to_log_event(const http::Event& sent) {
  if (sent.event == "heartbeat" || sent.data.empty()) return std::optional<ProcessEvent>();
  ATOLL_ASSIGN(json::value value, parse_answer(sent.data));
  ProcessEvent event;
  event.offset = client::number_of(value, "offset");
  if (sent.event == "stdout" || sent.event == "stderr") {
    event.stream = client::to_stream(sent.event);
    event.data = text_of(value, "data");
    event.bytes = client::number_of(value, "bytes");
    event.timestamp = text_of(value, "timestamp");
    return event;
  }
  if (sent.event == "lost") {
    event.kind = ProcessEvent::Kind::Lost;
    event.stream = client::to_stream(text_of(value, "stream"));
    event.lost = client::number_of(value, "bytes");
    return event;
  }
  if (sent.event != "exit") return std::optional<ProcessEvent>();
  event.kind = ProcessEvent::Kind::Exited;
  event.process = client::to_process(value);
  return event;
}

std::optional<FileChange> to_change(std::string_view name) {
  if (name == "created") return FileChange::Created;
  if (name == "modified") return FileChange::Modified;
  if (name == "removed") return FileChange::Removed;
  if (name == "renamed") return FileChange::Renamed;
  if (name == "attributes") return FileChange::Attributes;
  if (name == "overflow") return FileChange::Overflow;
  return std::nullopt;
}

}  // namespace

Attachment::Attachment(std::unique_ptr<State> state) : state_(std::move(state)) {}
Attachment::Attachment(Attachment&&) noexcept = default;
Attachment& Attachment::operator=(Attachment&&) noexcept = default;
Attachment::~Attachment() = default;

Result<ProcessEvent> Attachment::next(std::chrono::milliseconds timeout) {
  while (true) {
    ATOLL_ASSIGN(Message message, state_->socket.receive(timeout));
    ATOLL_ASSIGN(std::optional<ProcessEvent> event, to_event(message));
    if (event) return std::move(*event);
  }
}

Result<std::optional<ProcessEvent>> Attachment::try_next() {
  while (true) {
    ATOLL_ASSIGN(std::optional<Message> message, state_->socket.try_receive());
    if (!message) return std::optional<ProcessEvent>();
    ATOLL_ASSIGN(std::optional<ProcessEvent> event, to_event(*message));
    if (event) return event;
  }
}

Result<void> Attachment::write_input(std::string_view bytes) {
  std::string frame(1, '\0');
  frame.append(bytes);
  return state_->socket.send_binary(frame);
}

Result<void> Attachment::end_input() { return state_->socket.send_text(R"({"type":"eof"})"); }

Result<void> Attachment::resize(uint16_t cols, uint16_t rows) {
  json::object message{{"type", "resize"},
                       {"cols", static_cast<int64_t>(cols)},
                       {"rows", static_cast<int64_t>(rows)}};
  return state_->socket.send_text(json::serialize(message));
}

Result<void> Attachment::signal(std::string_view name) {
  json::object message{{"type", "signal"}, {"signal", name}};
  return state_->socket.send_text(json::serialize(message));
}

int Attachment::fd() const { return state_->socket.fd(); }
bool Attachment::pending() const { return state_->socket.pending(); }

OutputReader::OutputReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
OutputReader::OutputReader(OutputReader&&) noexcept = default;
OutputReader& OutputReader::operator=(OutputReader&&) noexcept = default;
OutputReader::~OutputReader() = default;
Result<size_t> OutputReader::read(std::span<char> into) { return state_->response.read(into); }

LogReader::LogReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
LogReader::LogReader(LogReader&&) noexcept = default;
LogReader& LogReader::operator=(LogReader&&) noexcept = default;
LogReader::~LogReader() = default;

Result<std::optional<ProcessEvent>> LogReader::next() {
  while (true) {
    ATOLL_ASSIGN(std::optional<http::Event> sent, state_->response.next_event());
    if (!sent) return std::optional<ProcessEvent>();
    ATOLL_ASSIGN(std::optional<ProcessEvent> event, to_log_event(*sent));
    if (event) return event;
  }
}

WatchReader::WatchReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
WatchReader::WatchReader(WatchReader&&) noexcept = default;
WatchReader& WatchReader::operator=(WatchReader&&) noexcept = default;
WatchReader::~WatchReader() = default;

Result<std::optional<FileEvent>> WatchReader::next() {
  while (true) {
    ATOLL_ASSIGN(std::optional<http::Event> sent, state_->response.next_event());
    if (!sent) return std::optional<FileEvent>();
    std::optional<FileChange> change = to_change(sent->event);
    if (!change) continue;
    FileEvent event;
    event.change = *change;
    if (!sent->data.empty()) {
      ATOLL_ASSIGN(json::value value, parse_answer(sent->data));
      event.path = text_of(value, "path");
      event.is_dir = client::flag_of(value, "isDir");
    }
    return event;
  }
}

EventReader::EventReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
EventReader::EventReader(EventReader&&) noexcept = default;
EventReader& EventReader::operator=(EventReader&&) noexcept = default;
EventReader::~EventReader() = default;

Result<std::optional<SandboxEvent>> EventReader::next() {
  while (true) {
    ATOLL_ASSIGN(std::optional<http::Event> sent, state_->response.next_event());
    if (!sent) return std::optional<SandboxEvent>();
    if (!sent->id.empty()) state_->position = sent->id;
    if (sent->event == "heartbeat" || sent->data.empty()) continue;
    return to_sandbox_event(*sent);
  }
}

const std::string& EventReader::position() const { return state_->position; }

}  // namespace atl
