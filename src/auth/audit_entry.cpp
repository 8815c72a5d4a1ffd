#include "auth/audit_entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "auth/digest.h"
#include "base/iso_time.h"
#include "base/json_escape.h"
#include "http/json.h"

namespace atl::auth {
namespace {

constexpr size_t kHashDigits = 64;
constexpr std::string_view kHashMember = ",\"hash\":\"";
// Escaping makes up to six bytes of one, and seven fields must fit kMaxAuditLineBytes.
constexpr size_t kMaxFieldBytes = 1024;
constexpr size_t kMaxDetailBytes = 4096;

bool is_hash(std::string_view text) { return text.size() == kHashDigits && is_lower_hex(text); }

// Valid JSON, but terminals and viewers act upon them: delete, the C1 controls, marks without width
// or with a direction, line and paragraph separators, the byte order mark.
bool is_deceptive(uint32_t c) {
  return (c >= 0x7F && c <= 0x9F) || c == 0xAD || (c >= 0x200B && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF;
}

struct Character {
  uint32_t code;
  size_t size;
};

// At `i` of well-formed UTF-8. Characters of four bytes are not told apart: none is deceptive.
Character character_at(std::string_view text, size_t i) {
  auto byte = [&](size_t k) { return uint32_t{static_cast<uint8_t>(text[i + k])}; };
  if (byte(0) < 0x80) return {byte(0), 1};
  if (byte(0) < 0xE0) return {(byte(0) & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (byte(0) < 0xF0) {
    return {(byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  }
  return {0x10000, 4};
}

void append_text(std::string& out, std::string_view text, size_t limit) {
  std::string quoted;
  if (text.size() > limit) {
    std::string cut(text.substr(0, limit));
    append_json_string(quoted, cut + fmt::format("...(+{} bytes)", text.size() - limit));
  } else {
    append_json_string(quoted, text);
  }
  auto is_plain = [](char c) { return static_cast<uint8_t>(c) < 0x7F; };
  if (std::all_of(quoted.begin(), quoted.end(), is_plain)) {
    out += quoted;
    return;
  }
  for (size_t i = 0; i < quoted.size();) {
    Character character = character_at(quoted, i);
    if (is_deceptive(character.code)) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", character.code);
    } else {
      out.append(quoted, i, character.size);
    }
    i += character.size;
  }
}

void append_member(std::string& out, std::string_view name, std::string_view text,
                   size_t limit = kMaxFieldBytes) {
  out.append(",\"").append(name).append("\":");
  append_text(out, text, limit);
}

Result<AuditLink> read_link(std::string_view line) {
  ATOLL_ASSIGN(http::JsonDocument document, http::JsonDocument::parse(line, kMaxAuditLineBytes));
  ATOLL_ASSIGN(const boost::json::object* object, document.object());
  http::JsonObjectReader reader(*object);
  AuditLink link;
  ATOLL_ASSIGN(int64_t seq, reader.require_integer("seq", 1, std::numeric_limits<int64_t>::max()));
  link.head.seq = static_cast<uint64_t>(seq);
  for (const char* name : {"at", "actor", "tenant", "action", "target", "outcome", "peer"}) {
    ATOLL_TRY(reader.require_string(name));
  }
  ATOLL_TRY(reader.optional_string("detail"));
  ATOLL_ASSIGN(link.prev, reader.require_string("prev"));
  ATOLL_ASSIGN(link.head.hash, reader.require_string("hash"));
  ATOLL_TRY(reader.finish());
  return link;
}

}  // namespace

std::string to_string(const AuditHead& head) { return fmt::format("{}:{}", head.seq, head.hash); }

Result<AuditHead> parse_audit_head(std::string_view text) {
  AuditHead head;
  const char* end = text.data() + text.size();
  auto [colon, error] = std::from_chars(text.data(), end, head.seq);
  if (error != std::errc() || colon == end || *colon != ':' || !is_hash({colon + 1, end})) {
    return fail(ErrorCode::InvalidArgument, "an audit log's head is NUMBER:HASH, as 17:3f0c...");
  }
  head.hash.assign(colon + 1, end);
  return head;
}

std::string encode_audit_line(const AuditEntry& entry, AuditHead& head) {
  head.seq++;
  std::string line = fmt::format("{{\"seq\":{},\"at\":\"{}\"", head.seq, iso_time(entry.at_ms));
  append_member(line, "actor", entry.actor);
  append_member(line, "tenant", entry.tenant);
  append_member(line, "action", entry.action);
  append_member(line, "target", entry.target);
  append_member(line, "outcome", entry.outcome);
  if (!entry.detail.empty()) append_member(line, "detail", entry.detail, kMaxDetailBytes);
  append_member(line, "peer", entry.peer);
  append_member(line, "prev", head.hash);
  head.hash = sha256_hex(line + "}");
  line.append(kHashMember).append(head.hash).append("\"}\n");
  return line;
}

Result<AuditLink> parse_audit_line(std::string_view line) {
  auto refuse = [](std::string why) { return fail(ErrorCode::InvalidArgument, std::move(why)); };
  size_t tail = kHashMember.size() + kHashDigits + 2;
  if (line.size() <= tail || line.size() >= kMaxAuditLineBytes) {
    return refuse("is not an audit entry");
  }
  std::string_view covered = line.substr(0, line.size() - tail);
  std::string expected = sha256_hex(std::string(covered) + "}");
  if (line.substr(covered.size()) != fmt::format("{}{}\"}}", kHashMember, expected)) {
    return refuse("does not have the hash it names: it was altered");
  }
  auto link = read_link(line);
  if (!link || !is_hash(link->prev)) return refuse("is not an audit entry");
  return link;
}

}  // namespace atl::auth
