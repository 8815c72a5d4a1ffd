// What the server and the agent say to each other.
//
// A connection's first frame decides what it is for:
//   ControlHello   requests and replies, many at once, each reply small
//   AttachRequest  one process: output to the server, input from it, with back-pressure
//   FileRequest    file operations, one after another, served by a child process of the agent
//   Suspend        the launcher's: a checkpoint is about to be taken; Resume: it has been
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "atoll/types.h"

namespace atl::wire {

enum class AgentType : uint16_t {
  Failure = 1,  // the reply to any request that could not be carried out
  Done,         // the reply to a request that has nothing to say
  ControlHello,
  ControlReady,
  Configure,
  ExecRequest,
  ExecReply,
  SignalRequest,
  ProcessListRequest,
  ProcessList,
  WaitRequest,
  WaitReply,
  AttachRequest,
  AttachReady,
  Output,
  OutputLost,
  Exited,
  Input,
  InputEnd,
  Resize,
  FileRequest,
  FileReply,
  FileData,
  FileEnd,
  FileEntries,
  FileMatch,
  FileEvent,
  Suspend,
  Suspended,
  Resume,
};

struct Failure {
  static constexpr AgentType kType = AgentType::Failure;
  uint8_t code = 0;  // ErrorCode
  int32_t sys_errno = 0;
  std::string message;
  std::string field;
  void visit(auto& v) { v(code, sys_errno, message, field); }
};

struct Done {
  static constexpr AgentType kType = AgentType::Done;
  void visit(auto&) {}
};

struct ControlHello {
  static constexpr AgentType kType = AgentType::ControlHello;
  uint32_t version = 1;
  void visit(auto& v) { v(version); }
};

struct ControlReady {
  static constexpr AgentType kType = AgentType::ControlReady;
  uint32_t version = 1;
  bool configured = false;
  void visit(auto& v) { v(version, configured); }
};

// Sent once, when a blank sandbox becomes somebody's: what every command inherits.
struct Configure {
  static constexpr AgentType kType = AgentType::Configure;
  std::string sandbox_id;
  Profile profile = Profile::Dev;
  std::vector<std::string> env;  // "NAME=value"
  std::string workdir;
  std::string default_user;
  bool awaited = false;  // a command is likely to come at once
  void visit(auto& v) { v(sandbox_id, profile, env, workdir, default_user, awaited); }
};

struct ExecRequest {
  static constexpr AgentType kType = AgentType::ExecRequest;
  std::vector<std::string> argv;
  std::vector<std::string> env;  // added to the sandbox's own, winning over it
  std::string cwd;               // empty: the sandbox's working directory
  std::string user;              // empty: the sandbox's default user
  std::string label;             // how process listings show it; empty: argv joined
  uint64_t timeout_ms = 0;       // 0: none
  bool wait = false;             // reply when it has ended (ExecReply), not when it has started
  bool stdin_open = false;
  bool pty = false;
  bool clean_env = false;
  uint16_t cols = 80;
  uint16_t rows = 24;
  void visit(auto& v) {
    v(argv, env, cwd, user, label, timeout_ms, wait, stdin_open, pty, clean_env, cols, rows);
  }
};

struct ExecReply {
  static constexpr AgentType kType = AgentType::ExecReply;
  ProcessInfo process;
  uint64_t duration_us = 0;
  // Whole output where it is small; else both are empty, `output_inline` is false, and the server
  // reads it through an attachment.
  bool output_inline = true;
  std::string stdout_data;
  std::string stderr_data;
  void visit(auto& v) { v(process, duration_us, output_inline, stdout_data, stderr_data); }
};

struct SignalRequest {
  static constexpr AgentType kType = AgentType::SignalRequest;
  int32_t pid = 0;
  int32_t signal = 0;
  bool tree = false;  // every process the command started, also those that left its group
  void visit(auto& v) { v(pid, signal, tree); }
};

struct ProcessListRequest {
  static constexpr AgentType kType = AgentType::ProcessListRequest;
  int32_t pid = 0;  // 0: all
  void visit(auto& v) { v(pid); }
};

struct ProcessList {
  static constexpr AgentType kType = AgentType::ProcessList;
  std::vector<ProcessInfo> processes;
  void visit(auto& v) { v(processes); }
};

struct WaitRequest {
  static constexpr AgentType kType = AgentType::WaitRequest;
  int32_t pid = 0;
  void visit(auto& v) { v(pid); }
};

struct WaitReply {
  static constexpr AgentType kType = AgentType::WaitReply;
  ProcessInfo process;
  void visit(auto& v) { v(process); }
};

// Output from the given offsets on; the end (Exited) follows the last byte. With follow false only
// what is kept now is sent.
struct AttachRequest {
  static constexpr AgentType kType = AgentType::AttachRequest;
  int32_t pid = 0;
  bool want_stdout = true;
  bool want_stderr = true;
  bool follow = true;
  uint64_t stdout_offset = 0;
  uint64_t stderr_offset = 0;
  bool take_input = false;  // what others have sent and the process has not got is dropped
  void visit(auto& v) {
    v(pid, want_stdout, want_stderr, follow, stdout_offset, stderr_offset, take_input);
  }
};

struct AttachReady {
  static constexpr AgentType kType = AgentType::AttachReady;
  ProcessInfo process;
  uint64_t input_bytes = 0;  // that it has got so far
  void visit(auto& v) { v(process, input_bytes); }
};

// Payload: this header, then the bytes.
struct OutputHeader {
  static constexpr AgentType kType = AgentType::Output;
  Stream stream = Stream::Stdout;
  uint64_t offset = 0;
  void visit(auto& v) { v(stream, offset); }
};
inline constexpr size_t kOutputHeaderBytes = 9;

struct OutputLost {
  static constexpr AgentType kType = AgentType::OutputLost;
  Stream stream = Stream::Stdout;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  void visit(auto& v) { v(stream, offset, bytes); }
};

struct Exited {
  static constexpr AgentType kType = AgentType::Exited;
  ProcessInfo process;
  void visit(auto& v) { v(process); }
};

struct InputEnd {
  static constexpr AgentType kType = AgentType::InputEnd;
  void visit(auto&) {}
};

struct Resize {
  static constexpr AgentType kType = AgentType::Resize;
  uint16_t cols = 80;
  uint16_t rows = 24;
  void visit(auto& v) { v(cols, rows); }
};

// Before a checkpoint. Sockets to the server cannot be part of one: the agent hands all it has over
// with the reply (as descriptors, in the order of its books), closes this connection too, and takes
// no new one until it gets kWakeSignal or has waited for too long.
struct Suspend {
  static constexpr AgentType kType = AgentType::Suspend;
  void visit(auto&) {}
};

struct Suspended {
  static constexpr AgentType kType = AgentType::Suspended;
  uint32_t connections = 0;
  void visit(auto& v) { v(connections); }
};

// After it, waiting in the listener's queue when the signal comes. With the descriptors of the
// reply to Suspend all goes on as if nothing had been. Without them, in a copy, those connections
// have ended.
struct Resume {
  static constexpr AgentType kType = AgentType::Resume;
  uint32_t connections = 0;
  void visit(auto& v) { v(connections); }
};
inline constexpr int kWakeSignal = 10;        // SIGUSR1
inline constexpr size_t kMaxSuspended = 250;  // what one message can carry

}  // namespace atl::wire
