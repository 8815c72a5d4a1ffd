#include "agent/attachment.h"

#include <errno.h>

#include <algorithm>

#include "agent/agent.h"
#include "agent/spawn.h"

namespace atl::agent {

// Beyond this we stop reading the client's input until the command takes some.
static constexpr size_t kMaxInput = 256u << 10;

Attachment::Attachment(Agent& agent, UniqueFd fd, wire::FrameBuffer pending,
                       std::shared_ptr<Process> process, const wire::AttachRequest& request)
    : Connection(agent.loop(), std::move(fd), std::move(pending)),
      agent_(agent),
      process_(std::move(process)),
      cursors_{{Stream::Stdout, request.want_stdout, request.stdout_offset,
                process_->stdout_pipe.log.end()},
               {Stream::Stderr, request.want_stderr, request.stderr_offset,
                process_->stderr_pipe.log.end()}},
      follow_(request.follow),
      input_watcher_(*this) {
  if (request.take_input) process_->take_input(this);
  send(0, wire::AttachReady{.process = process_->info, .input_bytes = process_->input_bytes});
  process_->observe(this);
  pump();
}

Attachment::~Attachment() {
  unwatch_input();
  process_->forget(this);
}

uint64_t Attachment::backlog() const {
  uint64_t behind = 0;
  const OutputLog* logs[] = {&process_->stdout_pipe.log, &process_->stderr_pipe.log};
  for (int i = 0; i < 2; i++) {
    if (!cursors_[i].wanted || !follow_) continue;
    uint64_t end = logs[i]->end();
    behind = std::max(behind, end - std::min(end, cursors_[i].offset));
  }
  return behind;
}

bool Attachment::caught_up(const Cursor& cursor, const OutputLog& log) const {
  return !cursor.wanted || cursor.offset >= (follow_ ? log.end() : cursor.stop);
}

const OutputLog& Attachment::log_of(const Cursor& cursor) const {
  return cursor.stream == Stream::Stderr ? process_->stderr_pipe.log : process_->stdout_pipe.log;
}

// False when the socket is full.
bool Attachment::finish_frame() {
  while (frame_left_ > 0) {
    OutputLog::View view = log_of(*in_frame_).at(in_frame_->offset);
    if (view.offset != in_frame_->offset || view.data.empty()) {
      // The bytes were dropped in mid-frame to stay within the budget: the reader starts again.
      close();
      on_closed();
      return false;
    }
    size_t part = std::min(frame_left_, view.data.size());
    size_t sent = send_raw(view.data.first(part));
    in_frame_->offset += sent;
    frame_left_ -= sent;
    if (sent < part) return false;
  }
  in_frame_ = nullptr;
  return true;
}

// False when the socket is full.
bool Attachment::pump_stream(Cursor& cursor, const OutputLog& log) {
  while (!caught_up(cursor, log)) {
    if (unsent() > 0) return false;
    OutputLog::View view = log.at(cursor.offset);
    if (view.offset > cursor.offset) {
      send(0, wire::OutputLost{.stream = cursor.stream,
                               .offset = cursor.offset,
                               .bytes = view.offset - cursor.offset});
      cursor.offset = view.offset;
      continue;
    }
    if (view.data.empty()) break;
    wire::OutputHeader header{.stream = cursor.stream, .offset = cursor.offset};
    size_t sent = begin_frame(static_cast<uint16_t>(wire::AgentType::Output), wire::encode(header),
                              view.data);
    cursor.offset += sent;
    in_frame_ = &cursor;
    frame_left_ = view.data.size() - sent;
    if (unsent() > 0 || !finish_frame()) return false;
  }
  return true;
}

void Attachment::pump() {
  if (finished_ || closed() || unsent() > 0) return;
  bool done = finish_frame() && pump_stream(cursors_[0], process_->stdout_pipe.log) &&
              pump_stream(cursors_[1], process_->stderr_pipe.log);
  if (closed()) return;
  set_write_wanted(frame_left_ > 0);
  if (done) finish_if_done();
}

void Attachment::finish_if_done() {
  bool all_sent = caught_up(cursors_[0], process_->stdout_pipe.log) &&
                  caught_up(cursors_[1], process_->stderr_pipe.log);
  if (!all_sent) return;
  // A background child may hold the pipes open after the command has ended: the end is the
  // command's own, whatever it left behind.
  if (follow_ && process_->info.running) return;
  finished_ = true;
  send(0, wire::Exited{.process = process_->info});
}

void Attachment::on_drained() {
  pump();
  process_->update_flow();
}

void Attachment::on_frame(const wire::Frame& frame) {
  switch (static_cast<wire::AgentType>(frame.type)) {
    case wire::AgentType::Input:
      return write_input(frame.payload);
    case wire::AgentType::InputEnd:
      if (input_taken_) return;
      input_end_ = true;
      return flush_input();
    case wire::AgentType::Resize: {
      auto resize = wire::decode<wire::Resize>(frame.payload);
      if (resize && process_->info.pty && process_->stdin_fd.valid()) {
        resize_pty(process_->stdin_fd.get(), resize->cols, resize->rows);
      }
      return;
    }
    default:
      return;
  }
}

void Attachment::write_input(std::string_view bytes) {
  if (input_taken_) return;
  input_.append(bytes);
  flush_input();
}

void Attachment::on_input_taken() {
  unwatch_input();
  input_taken_ = true;
  input_.clear();
  set_read_paused(false);
}

void Attachment::flush_input() {
  unwatch_input();
  int fd = process_->stdin_fd.get();
  size_t written = fd < 0 ? input_.size() : 0;  // nobody reads: the bytes have nowhere to go
  while (written < input_.size()) {
    ssize_t size = write(fd, input_.data() + written, input_.size() - written);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) break;
    written = size < 0 ? input_.size() : written + static_cast<size_t>(size);
  }
  process_->input_bytes += written;
  input_.erase(0, written);
  if (!input_.empty()) watch_input(fd);
  set_read_paused(input_.size() >= kMaxInput);
  if (input_.empty() && input_end_) end_input();
}

void Attachment::end_input() {
  input_end_ = false;
  if (process_->info.pty) {
    char end_of_transmission = 4;
    [[maybe_unused]] ssize_t ignored = write(process_->stdin_fd.get(), &end_of_transmission, 1);
  } else {
    process_->close_input();
  }
}

void Attachment::watch_input(int fd) {
  watched_input_ = fd;
  loop_.add(fd, EPOLLOUT, &input_watcher_);
}

void Attachment::unwatch_input() {
  if (watched_input_ < 0) return;
  loop_.remove(watched_input_, &input_watcher_);
  watched_input_ = -1;
}

void Attachment::on_closed() { agent_.drop(this); }

}  // namespace atl::agent
