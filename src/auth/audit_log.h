#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "auth/audit_entry.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace atl::auth {

inline constexpr std::string_view kAuditFile = "audit.jsonl";

struct AuditOptions {
  uint64_t max_file_bytes = 64 << 20;
};

// The one writer of a directory of audit files: audit.jsonl, and audit-<last seq>.jsonl for what
// was rotated away. The chain runs through all of them. It shows that something was changed to
// whoever noted a later head; against somebody who may write the files and was not watched it
// proves nothing. For one thread.
class AuditLog {
 public:
  // Makes what is missing (0700, 0600) and continues the chain from the last entry. Conflict while
  // another process writes. An entry that a crash cut off is moved to audit.jsonl.torn-<time>, and
  // that is itself an entry. A last entry that is whole but wrong is InvalidState: nothing is
  // written behind what was tampered with.
  static Result<AuditLog> open(const std::string& dir, int64_t now_ms, AuditOptions options = {});

  // One write(2) and no fsync: acknowledged entries survive the death of this process, but the last
  // few seconds may be lost with the machine. Where it fails nothing was written.
  Result<void> append(const AuditEntry& entry);

  const AuditHead& head() const { return head_; }

 private:
  AuditLog(UniqueFd dir, std::string path, AuditOptions options);
  Result<void> open_file();
  Result<void> resume(int64_t now_ms);
  Result<void> note_torn(std::string_view torn, int64_t now_ms);
  Result<void> rotate();
  Result<void> write_line(std::string_view line);

  UniqueFd dir_;  // locked
  std::string path_;
  AuditOptions options_;
  UniqueFd file_;
  uint64_t size_ = 0;
  AuditHead head_;
};

}  // namespace atl::auth
