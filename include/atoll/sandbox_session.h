// A live sandbox as code sees it: commands and files. One interface over every backend.
// Relative paths start at /workspace.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atoll/result.h"
#include "atoll/task.h"
#include "atoll/types.h"

namespace atl {

struct RunOptions {
  std::vector<std::string> argv;  // as it is; a shell string is {"/bin/bash","-l","-c",command}
  std::map<std::string, std::string> env;
  std::string cwd;
  std::string user;                      // empty: the sandbox's default
  std::string label;                     // how listings show it; empty: argv
  std::chrono::milliseconds timeout{0};  // 0: none; at its end the whole tree is killed
  bool clean_env = false;                // without the sandbox's own variables
  // Asked by run() before it collects a long output. Where the answer is no, the result says that
  // all of it was lost; the process still has it for attach().
  std::function<bool(uint64_t bytes)> admit_output;
};

struct SpawnOptions : RunOptions {
  bool stdin_open = false;
  bool pty = false;
  uint16_t cols = 80;
  uint16_t rows = 24;
};

struct RunResult {
  ProcessInfo process;
  std::string stdout_data;
  std::string stderr_data;
  uint64_t stdout_lost = 0;  // bytes that fell out of the middle of a very long output
  uint64_t stderr_lost = 0;
  std::chrono::microseconds duration{0};
};

struct OutputEvent {
  enum class Kind { Data, Lost, Exited } kind = Kind::Data;
  Stream stream = Stream::Stdout;
  uint64_t offset = 0;
  std::string_view data;  // valid until the next call
  uint64_t lost = 0;
  ProcessInfo process;  // Exited
};

struct AttachOptions {
  bool want_stdout = true;
  bool want_stderr = true;
  bool follow = true;  // else only what is kept now
  uint64_t stdout_offset = 0;
  uint64_t stderr_offset = 0;
  // Input that others have sent and the process has not got is dropped, and theirs from now on:
  // for a client that goes on after its connection broke.
  bool take_input = false;
};

// One client of one process. A reader that does not read makes the process wait. Dropping it
// leaves the process alone.
class ProcessStream {
 public:
  virtual ~ProcessStream() = default;

  // How much input the process had got when this was attached.
  virtual uint64_t input_bytes() const = 0;
  // The next event; after Exited there is none.
  virtual Task<Result<OutputEvent>> next() = 0;
  virtual Task<Result<void>> write_input(std::string bytes) = 0;
  virtual Task<Result<void>> end_input() = 0;
  virtual Task<Result<void>> resize(uint16_t cols, uint16_t rows) = 0;
  // Breaks the connection; a pending next() fails.
  virtual void cancel() = 0;
};

struct ReadOptions {
  uint64_t offset = 0;
  uint64_t limit = 0;       // 0: to the end
  uint32_t first_line = 0;  // 1-based, inclusive; 0: no line range
  uint32_t last_line = 0;   // past the end is the end
  std::string user;
};

class FileReader {
 public:
  virtual ~FileReader() = default;
  virtual const FileEntry& entry() const = 0;
  // How many bytes will come, where that is known beforehand.
  virtual std::optional<uint64_t> size() const = 0;
  // Empty at the end. Valid until the next call.
  virtual Task<Result<std::string_view>> read() = 0;
};

// Writes beside the file and replaces it at finish(); dropped before that, it leaves no trace.
class FileWriter {
 public:
  virtual ~FileWriter() = default;
  virtual Task<Result<void>> write(std::string_view bytes) = 0;
  virtual Task<Result<FileEntry>> finish() = 0;
};

struct WriteOptions {
  uint32_t mode = 0;  // 0: that of the file replaced, else 0644
  std::string user;
};

struct ListOptions {
  bool recursive = false;
  bool hidden = true;
  uint64_t limit = 0;
  std::string user = {};  // as whom; empty: the sandbox's default
};

struct FileList {
  std::vector<FileEntry> entries;
  bool truncated = false;
};

struct RemoveOptions {
  bool force = false;      // a missing path is fine
  bool recursive = false;  // a directory with all that is in it
  std::string user = {};
};

struct SearchOptions {
  std::string pattern;  // POSIX extended
  std::string glob;     // of file names
  std::string path;
  uint64_t max_results = 0;
  uint32_t context = 0;
  bool ignore_case = false;
};

struct SearchResult {
  std::vector<SearchMatch> matches;
  bool truncated = false;
};

class FileWatcher {
 public:
  virtual ~FileWatcher() = default;
  virtual Task<Result<FileEvent>> next() = 0;
  virtual void cancel() = 0;
};

class SandboxSession {
 public:
  virtual ~SandboxSession() = default;

  // The same for every handle of the same sandbox.
  virtual const std::string& id() const = 0;
  virtual std::string resolve_path(std::string_view path) const = 0;

  virtual Task<Result<RunResult>> run(RunOptions options) = 0;
  virtual Task<Result<ProcessInfo>> spawn(SpawnOptions options) = 0;
  virtual Task<Result<std::unique_ptr<ProcessStream>>> attach(int32_t pid,
                                                              AttachOptions options) = 0;
  virtual Task<Result<std::vector<ProcessInfo>>> processes() = 0;
  virtual Task<Result<ProcessInfo>> process(int32_t pid) = 0;
  virtual Task<Result<ProcessInfo>> wait(int32_t pid) = 0;
  // With `tree`, every process the command started.
  virtual Task<Result<void>> signal(int32_t pid, int signal, bool tree) = 0;

  virtual Task<Result<std::unique_ptr<FileReader>>> read_file(std::string path,
                                                              ReadOptions options) = 0;
  virtual Task<Result<std::unique_ptr<FileWriter>>> write_file(std::string path,
                                                               WriteOptions options) = 0;
  virtual Task<Result<FileEntry>> stat(std::string path, std::string user = {}) = 0;
  virtual Task<Result<bool>> exists(std::string path) = 0;
  virtual Task<Result<FileList>> list(std::string path, ListOptions options) = 0;
  virtual Task<Result<void>> make_directory(std::string path, bool recursive,
                                            std::string user = {}) = 0;
  virtual Task<Result<void>> move(std::string from, std::string to, std::string user = {}) = 0;
  virtual Task<Result<void>> remove_path(std::string path, RemoveOptions options) = 0;
  virtual Task<Result<SearchResult>> search(SearchOptions options) = 0;
  virtual Task<Result<std::unique_ptr<FileWatcher>>> watch(std::string path, bool recursive,
                                                           std::string user = {}) = 0;
  // A directory as a tar stream, out and in.
  virtual Task<Result<std::unique_ptr<FileReader>>> read_tree(std::string path) = 0;
  virtual Task<Result<std::unique_ptr<FileWriter>>> write_tree(std::string path) = 0;
};

}  // namespace atl
