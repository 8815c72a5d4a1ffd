// One line of the audit log: a JSON object that carries the hash of the line before and its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::auth {

struct AuditEntry {
  int64_t at_ms = 0;
  std::string actor;  // a key's or token's id, "uid:1000", "atoll"; never a secret
  std::string tenant;
  std::string action;   // "sandbox.create"
  std::string target;   // what it was done to
  std::string outcome;  // "accepted", "denied: ...", "failed: ...", "created: ..."
  std::string detail = {};
  std::string peer = {};  // where it came from
};

// A place in the chain. Whoever notes the last one down can tell later that nothing before it was
// changed and that the end was not cut off.
struct AuditHead {
  uint64_t seq = 0;
  std::string hash = std::string(64, '0');
  bool operator==(const AuditHead&) const = default;
};
// "17:3f0c.."
std::string to_string(const AuditHead& head);
Result<AuditHead> parse_audit_head(std::string_view text);

// No line is longer, newline included: overlong fields are cut, and say so.
inline constexpr size_t kMaxAuditLineBytes = 64 << 10;

// The line that follows `head`, newline included; `head` moves on to it. Whatever the fields hold,
// it is one line of printable UTF-8: control characters, line separators, direction marks and
// ill-formed bytes are escaped or replaced.
std::string encode_audit_line(const AuditEntry& entry, AuditHead& head);

struct AuditLink {
  AuditHead head;    // of this line
  std::string prev;  // hash of the line before
};
// Of a line without its newline, once its hash is right. InvalidArgument.
Result<AuditLink> parse_audit_line(std::string_view line);

}  // namespace atl::auth
