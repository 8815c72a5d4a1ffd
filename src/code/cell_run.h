// One cell in one kernel, from the request to its end.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <boost/json/object.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "atoll/sandbox_session.h"
#include "code/frames.h"
#include "code/launch.h"

namespace atl::code {

using SessionPtr = std::shared_ptr<SandboxSession>;

struct CellError {
  std::string name;
  std::string value;
  std::string traceback;
};

struct Event {
  enum class Kind { Begun, Stdout, Stderr, Result, Error } kind = Kind::Stdout;
  uint64_t number = 0;       // Begun: how many cells this kernel has run, with this one
  std::string text;          // Stdout, Stderr
  boost::json::object data;  // Result: what there is to see, by media type
  bool main = false;         // Result: the value of the last expression
  CellError error;
};

class Listener {
 public:
  virtual ~Listener() = default;
  // A failure means that nobody wants to know any more: the cell is interrupted.
  virtual Task<Result<void>> on_event(Event event) = 0;
};

struct Outcome {
  int exit_code = 0;  // 1 after an error, bash's own status, 124 when the time was up
  uint64_t number = 0;
  std::optional<CellError> error;
  bool timed_out = false;
  bool kernel_ended = false;
  bool begun = false;
  std::chrono::microseconds duration{0};
};

// A kernel as the agent knows it.
struct KernelProcess {
  ContextId id;
  int32_t pid = 0;
  std::string root;  // of whose tree of processes it is; empty: its own
};
// Ends it and what it has started, but none of its branches.
Task<Result<void>> end_kernel(SessionPtr session, KernelProcess kernel);

// Interrupts a cell whose time is up or which nobody waits for; ends a kernel that does not heed
// it.
class Stopper : public std::enable_shared_from_this<Stopper> {
 public:
  Stopper(const boost::asio::any_io_executor& executor, SessionPtr session, KernelProcess kernel)
      : timer_(executor), session_(std::move(session)), kernel_(std::move(kernel)) {}

  enum class Reason { NotBegun, TimeUp, Unwanted, Disturbed };
  // One deadline at a time; zero: none.
  void expect_within(std::chrono::milliseconds limit, Reason reason);
  void stop(Reason reason);
  // The cell has begun, if late: from now on it has its own time.
  void begun(std::chrono::milliseconds limit);
  // The cell has ended by itself or otherwise.
  void finish();

  std::optional<Reason> reason() const { return reason_; }

 private:
  Task<void> interrupt();
  void kill();

  boost::asio::steady_timer timer_;
  SessionPtr session_;
  KernelProcess kernel_;
  std::optional<Reason> reason_;
  int stage_ = 0;  // an interrupt is for one
  bool killed_ = false;
  bool finished_ = false;
};

struct CellOrder {
  KernelProcess kernel;
  Cell cell;
  std::string program;                   // of a new kernel; empty: it has it
  std::chrono::milliseconds timeout{0};  // 0: none
  uint64_t stdout_offset = 0;
  uint64_t stderr_offset = 0;
};

class CellRun {
 public:
  CellRun(SessionPtr session, CellOrder order, Listener& listener,
          std::shared_ptr<Stopper> stopper);
  // An error is one of the way to the kernel, or why it did not start.
  Task<Result<Outcome>> run();

 private:
  Task<Result<void>> send(ProcessStream& stream, std::string bytes);
  Task<void> take(Stream stream, std::string_view bytes);
  Task<void> take_message(Stream stream, std::string_view text);
  Task<void> tell(Event event);
  Task<Result<Outcome>> ended(const ProcessInfo& process);
  void judge();

  struct Side {
    explicit Side(const std::string& mark) : frames(mark) {}
    FrameReader frames;
    bool begun = false;
    bool ended = false;
    std::string early;  // what came before the first cell: why it did not start
  };
  Side& side(Stream stream) { return stream == Stream::Stderr ? stderr_ : stdout_; }

  SessionPtr session_;
  CellOrder order_;
  Listener& listener_;
  std::shared_ptr<Stopper> stopper_;
  std::string mark_ = make_mark();
  Side stdout_{mark_};
  Side stderr_{mark_};
  Outcome outcome_;
  bool wanted_ = true;
  std::chrono::steady_clock::time_point begun_at_;
};

}  // namespace atl::code
