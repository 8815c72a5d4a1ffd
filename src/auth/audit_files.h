// The files of an audit log's directory, for its writer and its verifier.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace atl::auth {

// "audit-000000000017.jsonl": sorted by name is sorted by sequence.
std::string rotated_audit_name(uint64_t last_seq);
// Oldest first.
Result<std::vector<std::string>> rotated_audit_files(int dir);

// Never through a symbolic link; InvalidState for what is not a regular file.
Result<UniqueFd> open_audit_file(int dir, std::string_view name, int flags);

// The end of a file.
struct AuditTail {
  std::string last_line;    // without its newline; empty where no line is whole
  std::string torn;         // what follows the last newline
  uint64_t whole_size = 0;  // of everything before that
};
// InvalidState where a line is longer than any that was written.
Result<AuditTail> read_audit_tail(int fd);

}  // namespace atl::auth
