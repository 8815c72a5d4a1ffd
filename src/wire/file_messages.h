// File operations. Each runs in a process of its own inside the sandbox, with the rights of the
// user it is done for, so a path can only ever mean what it means to that user in there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire/agent_messages.h"

namespace atl::wire {

enum class FileOp : uint8_t {
  Stat = 1,  // FileEntries with one entry
  List,      // FileEntries...
  Read,      // FileReply{entry}, FileData..., FileEnd
  Write,     // FileData... and FileEnd from the server, then FileReply{entry}
  Mkdir,
  Move,
  Remove,
  Search,     // FileMatch..., FileEnd
  Watch,      // Done once watching, then FileEvent...
  ReadTree,   // FileData... (a tar stream), FileEnd
  WriteTree,  // FileData... (a tar stream) and FileEnd from the server, then Done
};

struct FileRequest {
  static constexpr AgentType kType = AgentType::FileRequest;
  FileOp op = FileOp::Stat;
  std::string path;
  std::string target;   // Move: where to; Search: file name glob
  std::string pattern;  // Search
  std::string user;
  uint32_t mode = 0;  // Write, Mkdir; 0: the default
  bool recursive = false;
  bool force = false;  // Remove: a missing path is fine
  bool hidden = true;  // List: names starting with a dot
  bool follow = true;  // Stat: follow a final symlink
  bool ignore_case = false;
  uint32_t context = 0;     // Search: lines before and after
  uint64_t offset = 0;      // Read
  uint64_t limit = 0;       // Read: bytes; Search: matches; List: entries; 0: the default bound
  uint32_t first_line = 0;  // Read: 1-based, inclusive; 0: whole file
  uint32_t last_line = 0;
  void visit(auto& v) {
    v(op, path, target, pattern, user, mode, recursive, force, hidden, follow, ignore_case, context,
      offset, limit, first_line, last_line);
  }
};

struct FileReply {
  static constexpr AgentType kType = AgentType::FileReply;
  FileEntry entry;
  void visit(auto& v) { v(entry); }
};

struct FileEntries {
  static constexpr AgentType kType = AgentType::FileEntries;
  std::vector<FileEntry> entries;
  bool last = false;
  bool truncated = false;
  void visit(auto& v) { v(entries, last, truncated); }
};

struct FileEnd {
  static constexpr AgentType kType = AgentType::FileEnd;
  bool truncated = false;
  void visit(auto& v) { v(truncated); }
};

struct FileMatch {
  static constexpr AgentType kType = AgentType::FileMatch;
  SearchMatch match;
  void visit(auto& v) { v(match); }
};

struct FileChanged {
  static constexpr AgentType kType = AgentType::FileEvent;
  FileEvent event;
  void visit(auto& v) { v(event); }
};

}  // namespace atl::wire
