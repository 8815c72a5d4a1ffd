// What the client says of commands and files.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "atoll/types.h"

namespace atl {

// ---- commands

struct ExecRequest {
  std::vector<std::string> argv = {};  // as they are; or:
  std::string shell = {};              // a line for /bin/bash -l -c
  std::map<std::string, std::string> env = {};
  std::string cwd = {};
  std::string user = {};                 // empty: the sandbox's default
  std::chrono::milliseconds timeout{0};  // 0: none; at its end the whole tree is killed, code 124
};

struct SpawnRequest : ExecRequest {
  bool stdin_open = false;
  bool pty = false;
  uint16_t cols = 80;
  uint16_t rows = 24;
};

// The outputs are UTF-8 text: other bytes are replaced. spawn() and attach() are exact.
struct ExecResult {
  int32_t exit_code = 0;
  int32_t exit_signal = 0;
  int32_t pid = 0;
  bool timed_out = false;
  std::string stdout_data;
  std::string stderr_data;
  uint64_t stdout_lost = 0;  // bytes that fell out of the middle of a very long output
  uint64_t stderr_lost = 0;
  std::chrono::microseconds duration{0};
};

struct ProcessEvent {
  enum class Kind {
    Output,
    Lost,
    Refused,  // something sent to the process did not reach it; `data` says why
    Input,    // after AttachInput::Resume: the process has got `bytes` of input, go on from there
    Exited,
  };
  Kind kind = Kind::Output;
  Stream stream = Stream::Stdout;
  std::string data;       // Output, Refused
  uint64_t offset = 0;    // Output and Lost, where known
  uint64_t lost = 0;      // Lost: that many bytes are gone
  uint64_t bytes = 0;     // Output: as the process wrote it. Input
  std::string timestamp;  // from LogReader
  ProcessInfo process;    // Exited
};

enum class AttachInput {
  Share,   // beside whoever else gives the process input
  Resume,  // instead of them: what they sent and the process has not got is dropped
};

struct OutputOffsets {
  uint64_t stdout_offset = 0;
  uint64_t stderr_offset = 0;
};

struct OutputRequest {
  Stream stream = Stream::Stdout;
  bool follow = false;
  uint64_t offset = 0;
};

struct LogRequest {
  bool follow = false;
  OutputOffsets offsets;
};

enum class KillScope : uint8_t {
  Tree,     // with every process the command started
  Process,  // the command alone
};

// ---- files

struct DirectoryList {
  std::vector<FileEntry> entries;
  bool truncated = false;
};

struct ListFilesRequest {
  bool recursive = false;
  bool hidden = true;
  uint64_t limit = 0;
};

struct RemovePathRequest {
  bool recursive = false;
  bool force = false;  // a missing path is fine
};

struct SearchRequest {
  std::string pattern;  // POSIX extended
  std::string glob;     // of file names
  std::string cwd;
  uint64_t max_results = 0;
  uint32_t context = 0;
  bool ignore_case = false;
};

struct SearchAnswer {
  std::vector<SearchMatch> matches;
  bool truncated = false;
};

enum class WatchScope : uint8_t { Directory, Recursive };

struct DownloadRequest {
  uint64_t offset = 0;
  std::optional<uint64_t> length;  // none: to the end
  std::function<void(uint64_t done, std::optional<uint64_t> total)> progress;
};

struct UploadRequest {
  std::optional<uint64_t> length;  // where it is known beforehand
  uint32_t mode = 0;               // 0: that of the file replaced, else 0644
  std::function<void(uint64_t done, std::optional<uint64_t> total)> progress;
};

struct TransferReport {
  uint64_t files = 0;
  uint64_t bytes = 0;
  // Sockets, pipes and devices, which stay where they are.
  uint64_t skipped = 0;
};

}  // namespace atl
