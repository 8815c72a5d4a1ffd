#include "cli/attach_loop.h"

#include <errno.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "cli/input_history.h"
#include "cli/raw_terminal.h"
#include "cli/reattach.h"
#include "cli/terminal.h"

namespace atl::cli {
namespace {

// Sockets that poll() calls writable take this much without blocking. A blocked send would wait for
// a process that waits for us to read.
constexpr size_t kInputChunk = 8 * 1024;
// A pipe that poll() calls writable takes this much (PIPE_BUF) without blocking.
constexpr size_t kPipeChunk = 4096;
constexpr size_t kFileChunk = 256 * 1024;
constexpr int kEventsInARow = 64;

size_t output_chunk(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return kPipeChunk;
  return S_ISREG(info.st_mode) || S_ISCHR(info.st_mode) ? kFileChunk : kPipeChunk;
}

class AttachLoop {
 public:
  AttachLoop(Client& client, SignalWatch& signals, const AttachSettings& settings,
             Attachment attachment)
      : client_(client),
        signals_(signals),
        settings_(settings),
        attachment_(std::move(attachment)),
        reading_input_(settings.input),
        chunk_{output_chunk(STDOUT_FILENO), output_chunk(STDERR_FILENO)} {}

  Result<AttachEnd> run() {
    if (settings_.terminal) ATOLL_TRY(forward_size());
    while (!end_) {
      auto done = step();
      if (!done) ATOLL_TRY(reconnect(std::move(done).error()));
    }
    return *end_;
  }

 private:
  Result<void> step() {
    short wanted = POLLIN;
    if (has_input_to_send()) wanted |= POLLOUT;
    bool read_input = reading_input_ && input_.all_sent();
    pollfd polled[] = {{signals_.fd(), POLLIN, 0},
                       {attachment_.fd(), wanted, 0},
                       {read_input ? STDIN_FILENO : -1, POLLIN, 0}};
    int ready = poll(polled, 3, attachment_.pending() ? 0 : -1);
    if (ready < 0 && errno != EINTR) return fail_errno("poll");
    ATOLL_TRY(handle_signals());
    if (ready < 0) return {};
    if (polled[2].revents != 0) ATOLL_TRY(read_standard_input());
    if (polled[1].revents & POLLOUT) ATOLL_TRY(send_input());
    return receive();
  }

  Result<void> receive() {
    for (int i = 0; i < kEventsInARow && !end_; i++) {
      ATOLL_ASSIGN(std::optional<ProcessEvent> event, attachment_.try_next());
      if (!event) return {};
      unconfirmed_ = 0;
      ATOLL_TRY(handle(*event));
    }
    return {};
  }

  Result<void> handle(const ProcessEvent& event) {
    bool to_stdout = event.stream == Stream::Stdout;
    uint64_t& offset = to_stdout ? offsets_.stdout_offset : offsets_.stderr_offset;
    switch (event.kind) {
      case ProcessEvent::Kind::Exited:
        end_ = AttachEnd{AttachEnd::Kind::Exited, event.process.exit_code};
        return {};
      case ProcessEvent::Kind::Refused:  // its input is closed, or it has just ended
        return {};
      case ProcessEvent::Kind::Input:
        return go_on_with_input(event.bytes);
      case ProcessEvent::Kind::Lost:
        offset += event.lost;
        fmt::print(stderr, "atoll: {} bytes of {} were lost (they came faster than read)\n",
                   event.lost, to_stdout ? "output" : "error output");
        return {};
      case ProcessEvent::Kind::Output:
        offset += event.data.size();
        return write_output(to_stdout ? STDOUT_FILENO : STDERR_FILENO, event.data);
    }
    return {};
  }

  // Signals are seen also while whoever reads our output does not read.
  Result<void> write_output(int fd, std::string_view data) {
    while (!data.empty() && !end_) {
      pollfd polled[] = {{signals_.fd(), POLLIN, 0}, {fd, POLLOUT, 0}};
      if (poll(polled, 2, -1) < 0 && errno != EINTR) return fail_errno("poll");
      ATOLL_TRY(handle_signals());
      if (polled[1].revents == 0) continue;
      size_t most = chunk_[fd == STDOUT_FILENO ? 0 : 1];
      ssize_t written = write(fd, data.data(), std::min(data.size(), most));
      if (written >= 0) {
        data.remove_prefix(static_cast<size_t>(written));
      } else if (errno == EPIPE) {
        // Nobody reads what goes to standard error: that is no reason to end.
        if (fd == STDERR_FILENO) return {};
        end_ = AttachEnd{AttachEnd::Kind::NoReader, 128 + SIGPIPE};
      } else if (errno != EINTR && errno != EAGAIN) {
        // Full disk or a terminal that is gone: not a broken connection, so not to be retried.
        given_up_ = true;
        return fail_errno("write", fd == STDOUT_FILENO ? "standard output" : "standard error");
      }
    }
    return {};
  }

  Result<void> read_standard_input() {
    char block[kInputChunk];
    ssize_t got = read(STDIN_FILENO, block, sizeof block);
    if (got > 0) input_.append({block, static_cast<size_t>(got)});
    if (got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN))) return {};
    // A terminal that was closed reads as EIO: the end, too.
    reading_input_ = false;
    end_due_ = true;
    return {};
  }

  bool has_input_to_send() const { return !awaiting_offset_ && (!input_.all_sent() || end_due_); }

  Result<void> send_input() {
    if (!has_input_to_send()) return {};
    std::string_view part = input_.unsent(kInputChunk);
    if (!part.empty()) {
      ATOLL_TRY(attachment_.write_input(part));
      input_.mark_sent(part.size());
      return {};
    }
    end_due_ = false;
    end_sent_ = true;
    return attachment_.end_input();
  }

  // On a new connection. What the old one took and the process never got is sent again, and so is
  // the end; but not to a terminal, where it is a key that would be pressed twice.
  Result<void> go_on_with_input(uint64_t offset) {
    awaiting_offset_ = false;
    if (!input_.rewind(offset)) {
      given_up_ = true;
      return fail(ErrorCode::Internal, "input was lost when the connection broke");
    }
    if (end_sent_ && !settings_.terminal) end_due_ = true;
    return {};
  }

  Result<void> handle_signals() {
    while (std::optional<int> number = signals_.next()) {
      if (*number == SIGWINCH) {
        if (settings_.terminal) ATOLL_TRY(forward_size());
        continue;
      }
      // On a terminal the keys do this; a signal means that the terminal or the program must go.
      bool last = settings_.terminal || forwarded_;
      forwarded_ = true;
      unconfirmed_ = *number;
      auto sent = attachment_.signal(settings_.terminal ? "SIGHUP" : name_of(*number));
      if (last) end_ = AttachEnd{AttachEnd::Kind::Detached, 128 + *number};
      if (!last) ATOLL_TRY(std::move(sent));
    }
    return {};
  }

  static std::string name_of(int number) { return std::string("SIG") + sigabbrev_np(number); }

  Result<void> forward_size() {
    TerminalSize size = terminal_size(isatty(STDIN_FILENO) == 1 ? STDIN_FILENO : STDOUT_FILENO);
    return attachment_.resize(size.cols, size.rows);
  }

  Result<void> reconnect(Error cause) {
    if (given_up_) return fail(std::move(cause));
    ReattachPlan plan{.sandbox = settings_.sandbox,
                      .pid = settings_.process.pid,
                      .offsets = offsets_,
                      .resume_input = settings_.input,
                      .interrupt_fd = signals_.fd(),
                      .only_once = unconfirmed_ != 0};
    auto again = reattach(client_, plan, std::move(cause));
    if (!again && again.error().code() == ErrorCode::Cancelled) {
      // There is nobody to pass the signal on to.
      int number = unconfirmed_ != 0 ? unconfirmed_ : signals_.next().value_or(SIGINT);
      end_ = AttachEnd{AttachEnd::Kind::Detached, 128 + number};
      return {};
    }
    if (!again) return fail(std::move(again).error());
    attachment_ = std::move(*again);
    awaiting_offset_ = settings_.input;
    // The old connection may have taken it along.
    if (int number = std::exchange(unconfirmed_, 0)) return attachment_.signal(name_of(number));
    return {};
  }

  Client& client_;
  SignalWatch& signals_;
  const AttachSettings& settings_;
  Attachment attachment_;
  bool reading_input_;
  size_t chunk_[2];
  InputHistory input_;
  bool end_due_ = false;  // of the input, once all of it is sent
  bool end_sent_ = false;
  bool awaiting_offset_ = false;  // until the process's side says how far the input got
  OutputOffsets offsets_;
  bool forwarded_ = false;
  int unconfirmed_ = 0;    // the last signal passed on, until the server shows that it is there
  bool given_up_ = false;  // over something that no new connection puts right
  std::optional<AttachEnd> end_;
};

}  // namespace

Result<AttachEnd> attach_streams(Client& client, SignalWatch& signals,
                                 const AttachSettings& settings) {
  ATOLL_ASSIGN(Attachment attachment, client.attach(settings.sandbox, settings.process.pid));
  std::optional<RawTerminal> raw;
  if (settings.terminal && settings.input) raw.emplace();
  return AttachLoop(client, signals, settings, std::move(attachment)).run();
}

}  // namespace atl::cli
