// One command and what it left: its pipes or terminal, its output, its end. It outlives the
// connection that asked for it; a client can attach later and read what was kept.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/cgroup_pool.h"
#include "agent/event_loop.h"
#include "agent/output_log.h"
#include "agent/spawn.h"
#include "base/unique_fd.h"
#include "wire/agent_messages.h"

namespace atl::agent {

class Process;

// Reads one output pipe (or the terminal) into a log.
class OutputPipe : public Watcher {
 public:
  OutputPipe(Process& owner, EventLoop& loop) : owner_(owner), loop_(loop) {}
  ~OutputPipe() override { close(); }

  void open(UniqueFd fd);
  void close();
  bool is_open() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  void on_ready(uint32_t events) override;
  // Reads until there is nothing more at this moment.
  void drain();
  // Stops and resumes reading: the command then blocks on its pipe.
  void set_paused(bool paused);

  OutputLog log;

 private:
  bool read_some();
  ssize_t read_first();
  ssize_t read_more();

  Process& owner_;
  EventLoop& loop_;
  UniqueFd fd_;
  bool paused_ = false;
  bool enlarged_ = false;
};

// Whoever follows a process: told of new output and of the end.
class ProcessObserver {
 public:
  virtual ~ProcessObserver() = default;
  virtual void on_output() = 0;
  virtual void on_exit() = 0;
  // How far behind the newest byte this observer may still need bytes kept; 0 when caught up.
  virtual uint64_t backlog() const = 0;
  // Somebody else gives the process its input from now on.
  virtual void on_input_taken() {}
};

class Process {
 public:
  Process(EventLoop& loop, pid_t pid) : stdout_pipe(*this, loop), stderr_pipe(*this, loop) {
    info.pid = pid;
    info.running = true;
  }

  void observe(ProcessObserver* observer) { observers_.push_back(observer); }
  void forget(ProcessObserver* observer);
  void output_arrived();
  void update_flow();
  void take_input(const ProcessObserver* owner);
  // Nobody may wait for the descriptor any more when its number becomes somebody else's.
  void close_input();
  void ended(int status, uint64_t cpu_us);

  ProcessInfo info;
  OutputPipe stdout_pipe;  // the terminal, for a process with one
  OutputPipe stderr_pipe;
  UniqueFd stdin_fd;         // a second descriptor of the terminal, for a process with one
  uint64_t input_bytes = 0;  // written there, or dropped because nobody reads
  std::unique_ptr<ExecCgroup> cgroup;
  std::unique_ptr<Launch> launch;    // until the command has execed
  std::optional<Error> start_error;  // it ended because it could not be started
  std::string program;
  uint64_t started_us = 0;
  uint64_t deadline_ms = 0;  // monotonic; 0: none

 private:
  std::vector<ProcessObserver*> observers_;
};

}  // namespace atl::agent
