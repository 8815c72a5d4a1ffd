#include "auth/audit_verify.h"

#include <gmock/gmock.h>

#include <vector>

#include "auth/audit_log.h"
#include "auth/auth_test_support.h"

namespace atl::auth {
namespace {

using testing::HasSubstr;

// Ten entries, three a file: audit-..3, ..6, ..9 and audit.jsonl.
class AuditVerify : public testing::Test {
 protected:
  void SetUp() override {
    auto log = AuditLog::open(dir_.path(), 0, {.max_file_bytes = 1000});
    ASSERT_TRUE(log);
    for (int i = 1; i <= 10; i++) {
      ASSERT_TRUE(log->append({.at_ms = 0,
                               .actor = "k",
                               .tenant = "t",
                               .action = "sandbox.create",
                               .target = std::string("target-") + std::to_string(i % 10),
                               .outcome = "ok"}));
      heads_.push_back(log->head());
    }
  }
  AuditReport verify(const AuditAnchors& anchors = {}) const {
    return verify_audit_log(dir_.path(), anchors).value();
  }
  void edit(const std::string& name, std::string_view from, std::string_view to) const {
    std::string content = read_file(dir_ / name);
    size_t at = content.find(from);
    ASSERT_NE(at, content.npos);
    write_file(dir_ / name, content.replace(at, from.size(), to));
  }
  void expect_fault(const AuditAnchors& anchors, const std::string& file, uint64_t line,
                    const std::string& reason) const {
    AuditReport report = verify(anchors);
    ASSERT_TRUE(report.fault);
    EXPECT_EQ(report.fault->file, file);
    EXPECT_EQ(report.fault->line, line);
    EXPECT_THAT(report.fault->reason, HasSubstr(reason));
  }

  const std::string first_ = "audit-000000000003.jsonl";
  const std::string second_ = "audit-000000000006.jsonl";
  const std::string third_ = "audit-000000000009.jsonl";
  TempDir dir_;
  std::vector<AuditHead> heads_;
};

TEST_F(AuditVerify, AnUntouchedLogIsGood) {
  AuditReport report = verify({.head = heads_[6]});
  EXPECT_FALSE(report.fault);
  EXPECT_EQ(report.files, 4u);
  EXPECT_EQ(report.entries, 10u);
  EXPECT_EQ(report.head, heads_.back());
}

TEST_F(AuditVerify, NamesTheFirstAlteredLine) {
  edit(second_, "target-6", "target-9");
  edit(second_, "target-5", "target-9");
  expect_fault({}, second_, 2, "altered");
  EXPECT_EQ(verify().head, heads_[3]) << "what stands before is good";
}

TEST_F(AuditVerify, NoticesALineTakenOut) {
  std::string content = read_file(dir_ / first_);
  size_t begin = content.find('\n') + 1;
  write_file(dir_ / first_, content.erase(begin, content.find('\n', begin) + 1 - begin));
  expect_fault({}, first_, 2, "has number 3 where 2 should follow");
}

TEST_F(AuditVerify, NoticesAFileTakenOut) {
  std::filesystem::remove(dir_ / second_);
  expect_fault({}, third_, 1, "has number 7 where 4 should follow");
}

TEST_F(AuditVerify, NoticesAFileCutOff) {
  std::string content = read_file(dir_ / first_);
  write_file(dir_ / first_, content.substr(0, content.size() - 10));
  expect_fault({}, first_, 3, "cut off");
  write_file(dir_ / first_, content.substr(0, content.find('\n') + 1));
  expect_fault({}, second_, 1, "has number 4 where 2 should follow");
}

TEST_F(AuditVerify, NoticesEntriesOfAnotherChain) {
  AuditHead forged = heads_[1];
  forged.hash = heads_[0].hash;
  AuditEntry entry{.actor = "k", .tenant = "t", .action = "a", .target = "x", .outcome = "ok"};
  std::string content = read_file(dir_ / first_);
  content.erase(content.rfind('{'));
  write_file(dir_ / first_, content + encode_audit_line(entry, forged));
  expect_fault({}, first_, 3, "does not follow");
}

TEST_F(AuditVerify, NoticesWhatIsNoEntryAtAll) {
  write_file(dir_ / "audit.jsonl", read_file(dir_ / "audit.jsonl") + "\n");
  expect_fault({}, "audit.jsonl", 2, "not an audit entry");
  write_file(dir_ / "audit.jsonl", std::string(10 << 20, 'x'));
  expect_fault({}, "audit.jsonl", 0, "too long");
}

TEST_F(AuditVerify, OnlyANotedHeadShowsThatTheEndIsMissing) {
  AuditAnchors noted{.head = heads_.back()};
  std::filesystem::remove(dir_ / "audit.jsonl");
  EXPECT_FALSE(verify().fault);
  expect_fault(noted, third_, 3, "entry 10 was noted");
  for (const std::string& name : {first_, second_, third_}) std::filesystem::remove(dir_ / name);
  expect_fault(noted, "", 0, "entry 10 was noted");
}

TEST_F(AuditVerify, ANotedHeadShowsARewrittenLog) {
  AuditAnchors noted{.head = heads_[4]};
  noted.head->hash[0] = noted.head->hash[0] == '0' ? '1' : '0';
  expect_fault(noted, second_, 2, "rewritten");
}

TEST_F(AuditVerify, ArchivedFilesMayBeMissingWhereTheirEndIsKnown) {
  std::filesystem::remove(dir_ / first_);
  expect_fault({}, second_, 1, "has number 4 where 1 should follow");
  AuditReport report = verify({.start = heads_[2]});
  EXPECT_FALSE(report.fault);
  EXPECT_EQ(report.entries, 7u);
  expect_fault({.start = {3, heads_[1].hash}}, second_, 1, "does not follow");
}

TEST_F(AuditVerify, OtherFilesAreLeftAlone) {
  write_file(dir_ / "audit.jsonl.torn-1", "x");
  write_file(dir_ / "audit-x.jsonl", "x");
  write_file(dir_ / "notes", "x");
  EXPECT_FALSE(verify().fault);
}

TEST_F(AuditVerify, SaysWhichDirectoryIsMissing) {
  EXPECT_EQ(verify_audit_log(dir_ / "no").error().code(), ErrorCode::NotFound);
  std::filesystem::create_directory(dir_ / "empty");
  EXPECT_EQ(verify_audit_log(dir_ / "empty")->entries, 0u);
}

}  // namespace
}  // namespace atl::auth
