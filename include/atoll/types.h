// Plain values that cross every interface of Atoll: the wire to the agent, the session interface
// and the client. `visit` lists the fields for the wire codec.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace atl {

enum class Profile : uint8_t {
  Dev,     // root of the sandbox's own user namespace, with what package managers need
  Strict,  // no capabilities at all
};

struct ProcessInfo {
  int32_t pid = 0;
  std::string label;
  std::string cwd;
  std::string user;
  bool running = false;
  bool pty = false;
  int32_t exit_code = -1;  // 128+n when ended by signal n, 124 when the time was up
  int32_t exit_signal = 0;
  bool timed_out = false;
  uint64_t started_at_ms = 0;  // Unix time
  uint64_t ended_at_ms = 0;
  uint64_t cpu_us = 0;
  uint64_t stdout_bytes = 0;
  uint64_t stderr_bytes = 0;
  void visit(auto& v) {
    v(pid, label, cwd, user, running, pty, exit_code, exit_signal, timed_out, started_at_ms,
      ended_at_ms, cpu_us, stdout_bytes, stderr_bytes);
  }
};

enum class Stream : uint8_t { Stdout = 1, Stderr = 2 };

enum class FileKind : uint8_t { File = 1, Directory, Symlink, Other };

struct FileEntry {
  std::string name;
  std::string path;
  std::string link_target;
  std::string owner;
  std::string group;
  FileKind kind = FileKind::File;
  FileKind target_kind = FileKind::Other;  // of a symlink: what it leads to; Other: nothing
  uint32_t mode = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t size = 0;
  int64_t modified_ms = 0;
  int64_t accessed_ms = 0;
  void visit(auto& v) {
    v(name, path, link_target, owner, group, kind, target_kind, mode, uid, gid, size, modified_ms,
      accessed_ms);
  }
};

struct SearchMatch {
  std::string path;
  uint32_t line = 0;
  uint32_t column = 0;
  std::string text;
  std::vector<std::string> before;
  std::vector<std::string> after;
  void visit(auto& v) { v(path, line, column, text, before, after); }
};

enum class FileChange : uint8_t { Created = 1, Modified, Removed, Renamed, Attributes, Overflow };

struct FileEvent {
  FileChange change = FileChange::Modified;
  std::string path;
  bool is_dir = false;
  void visit(auto& v) { v(change, path, is_dir); }
};

struct Limits {
  uint64_t memory_bytes = 0;  // 0: unlimited, in every field
  uint32_t cpu_millis = 0;    // 1000 = one core
  uint32_t pids = 0;
  uint64_t disk_bytes = 0;
  void visit(auto& v) { v(memory_bytes, cpu_millis, pids, disk_bytes); }
  bool operator==(const Limits&) const = default;
};

struct Usage {
  uint64_t memory_bytes = 0;
  uint64_t memory_peak_bytes = 0;
  uint64_t cpu_us = 0;
  uint32_t pids = 0;
  uint64_t oom_kills = 0;
  void visit(auto& v) { v(memory_bytes, memory_peak_bytes, cpu_us, pids, oom_kills); }
};

// Where sandboxes' files live.
struct StorageInfo {
  uint64_t bytes = 0;
  uint64_t free_bytes = 0;
  uint64_t host_free_bytes = 0;  // on the disk below, where it is an image on one
  bool growable = false;
  std::string lacking;  // why nothing can be copied or limited; empty where it can
};

// What a sandbox of a template has where its creator says nothing. 0 and empty: as usual.
struct TemplateSettings {
  std::map<std::string, std::string> env;
  std::string workdir;
  std::string user;
  Limits limits;
  std::string network;  // a policy, as JSON
  bool operator==(const TemplateSettings&) const = default;
};

// Whether processes can be kept, by a trial.
struct MemorySupport {
  bool available = false;
  std::string version;  // of what does it
  std::string reason;   // where it is not
};

}  // namespace atl
