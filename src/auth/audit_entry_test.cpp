#include "auth/audit_entry.h"

#include <gmock/gmock.h>

#include <boost/json.hpp>

#include "auth/digest.h"
#include "base/json_escape.h"

namespace atl::auth {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int64_t kAt = 1'767'323'045'678;

std::string encode(const AuditEntry& entry) {
  AuditHead head;
  return encode_audit_line(entry, head);
}
AuditEntry with_target(std::string target) {
  return {.at_ms = kAt,
          .actor = "k",
          .tenant = "t",
          .action = "a",
          .target = std::move(target),
          .outcome = "ok"};
}
std::string without_newline(std::string line) {
  EXPECT_EQ(line.back(), '\n');
  line.pop_back();
  return line;
}

TEST(AuditEntry, IsOneJsonObjectWithItsOwnHash) {
  AuditHead head;
  std::string line = encode_audit_line({.at_ms = kAt,
                                        .actor = "4f1c09d2a7be",
                                        .tenant = "acme",
                                        .action = "sandbox.create",
                                        .target = "web",
                                        .outcome = "ok",
                                        .detail = "cpu 1",
                                        .peer = "127.0.0.1"},
                                       head);
  std::string covered =
      R"({"seq":1,"at":"2026-01-02T03:04:05.678Z","actor":"4f1c09d2a7be","tenant":"acme",)"
      R"("action":"sandbox.create","target":"web","outcome":"ok","detail":"cpu 1",)"
      R"("peer":"127.0.0.1","prev":")" +
      std::string(64, '0') + "\"";
  std::string hash = sha256_hex(covered + "}");
  EXPECT_EQ(line, covered + ",\"hash\":\"" + hash + "\"}\n");
  EXPECT_EQ(head, (AuditHead{1, hash}));
  auto link = parse_audit_line(without_newline(line));
  ASSERT_TRUE(link) << link.error().message();
  EXPECT_EQ(link->head, head);
  EXPECT_EQ(link->prev, std::string(64, '0'));
}

TEST(AuditEntry, NoDetailIsNoMember) {
  EXPECT_THAT(encode(with_target("web")), Not(HasSubstr("detail")));
}

TEST(AuditEntry, EachNamesTheOneBefore) {
  AuditHead head;
  encode_audit_line(with_target("a"), head);
  std::string first = head.hash;
  auto second = parse_audit_line(without_newline(encode_audit_line(with_target("b"), head)));
  EXPECT_EQ(second->prev, first);
  EXPECT_EQ(second->head.seq, 2u);
}

// What a caller controls can neither begin a line nor leave its string.
TEST(AuditEntry, NoFieldCanForgeAnEntry) {
  std::string forged = encode(with_target("innocent"));
  for (const std::string& text :
       {"x\n" + forged, "x\r\n" + forged, std::string("x\",\"outcome\":\"ok\",\"target\":\"y"),
        std::string("x\0\n", 3), std::string("\x1b[2K\x1b[1A"), std::string("\x7f"),
        std::string("\xC2\x85"),
        std::string("\xC2\x9B"
                    "2K"),
        std::string("\xE2\x80\xA8"),
        std::string("\xE2\x80\xAE"
                    "ko"),
        std::string("\xE2\x81\xA6"), std::string("\xEF\xBB\xBF"),
        std::string("\xFF\xC0\x80\xED\xA0\x80\xF5"), std::string("cut \xE2\x80")}) {
    AuditEntry entry{.at_ms = kAt,
                     .actor = text,
                     .tenant = text,
                     .action = text,
                     .target = text,
                     .outcome = text,
                     .detail = text,
                     .peer = text};
    std::string line = encode(entry);
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    EXPECT_TRUE(is_valid_utf8(line));
    for (const char* raw : {"\r", "\x1b", "\x7f", "\xC2\x85", "\xC2\x9B", "\xE2\x80\xA8",
                            "\xE2\x80\xAE", "\xE2\x81\xA6", "\xEF\xBB\xBF"}) {
      EXPECT_THAT(line, Not(HasSubstr(raw)));
    }
    line = without_newline(line);
    EXPECT_TRUE(parse_audit_line(line)) << line;
    auto value = boost::json::parse(line);
    EXPECT_EQ(std::string(value.at("target").as_string()), to_valid_utf8(text)) << "and reads back";
  }
}

TEST(AuditEntry, OrdinaryTextIsLeftAlone) {
  std::string text = "gr\xC3\xBC\xC3\x9F \xF0\x9F\x8F\x9D \xE6\x97\xA5 a/b?c=d";
  EXPECT_THAT(encode(with_target(text)), HasSubstr("\"target\":\"" + text + "\""));
}

TEST(AuditEntry, OverlongFieldsAreCutAndTheLineFits) {
  std::string worst(1 << 20, '\x01');
  AuditEntry entry{.at_ms = kAt,
                   .actor = worst,
                   .tenant = worst,
                   .action = worst,
                   .target = worst,
                   .outcome = worst,
                   .detail = worst,
                   .peer = worst};
  std::string line = encode(entry);
  EXPECT_LT(line.size(), kMaxAuditLineBytes);
  EXPECT_THAT(line, HasSubstr("...(+1047552 bytes)"));
  EXPECT_TRUE(parse_audit_line(without_newline(line)));
}

TEST(AuditEntry, EveryAlteredByteIsNoticed) {
  const std::string line = without_newline(encode(with_target("web")));
  for (size_t at = 0; at < line.size(); at++) {
    std::string altered = line;
    altered[at] = static_cast<char>(altered[at] ^ 1);
    EXPECT_FALSE(parse_audit_line(altered)) << at;
    EXPECT_FALSE(parse_audit_line(line.substr(0, at)));
  }
  EXPECT_FALSE(parse_audit_line(line + " "));
  EXPECT_FALSE(parse_audit_line(std::string(kMaxAuditLineBytes, 'x')));
}

// A right hash does not make an entry of any text.
TEST(AuditEntry, OnlyEntriesOfOurShapeParse) {
  for (std::string covered :
       {"{\"seq\":1", "[1", "{", "{\"seq\":0,\"at\":\"\",\"actor\":\"\",\"tenant\":\"\"", ""}) {
    std::string hash = sha256_hex(covered + "}");
    EXPECT_FALSE(parse_audit_line(covered + ",\"hash\":\"" + hash + "\"}")) << covered;
  }
}

TEST(AuditHead, ReadsBack) {
  AuditHead head{17, sha256_hex("x")};
  EXPECT_EQ(*parse_audit_head(to_string(head)), head);
  for (const char* bad : {"", ":", "17", "17:", "x:00", "-1:00", "17:00"}) {
    EXPECT_FALSE(parse_audit_head(bad)) << bad;
  }
  EXPECT_FALSE(parse_audit_head(to_string(head) + "0"));
  EXPECT_FALSE(parse_audit_head("99999999999999999999:" + head.hash));
}

}  // namespace
}  // namespace atl::auth
