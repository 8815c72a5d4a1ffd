#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "auth/audit_entry.h"
#include "base/result.h"

namespace atl::auth {

struct AuditAnchors {
  // The last entry that is no longer there, where old files were archived.
  AuditHead start = {};
  // Noted earlier, and so known to have been written.
  std::optional<AuditHead> head = {};
};

struct AuditFault {
  std::string file;
  uint64_t line = 0;  // from 1
  std::string reason;
};

struct AuditReport {
  uint64_t files = 0;
  uint64_t entries = 0;                  // that are good
  AuditHead head = {};                   // the last good one: what to note down
  std::optional<AuditFault> fault = {};  // the first
};

// Reads every entry of a log, which may be in use. Without a noted head an end that was cut off at
// the end of a line cannot be told from one that was never written. An Error means that the files
// could not be read.
Result<AuditReport> verify_audit_log(const std::string& dir, const AuditAnchors& anchors = {});

}  // namespace atl::auth
