#include <gmock/gmock.h>

#include "auth/audit_log.h"
#include "auth/audit_test_support.h"

namespace atl::auth {
namespace {

using testing::HasSubstr;

class AuditRecovery : public AuditLogTest {};

TEST_F(AuditRecovery, ATornEntryIsSetAsideAndNoted) {
  std::string before;
  {
    AuditLog log = open();
    EXPECT_TRUE(log.append(entry("a")));
    before = read_file(file());
    EXPECT_TRUE(log.append(entry("b")));
  }
  std::string torn = read_file(file()).substr(before.size(), 50);
  write_file(file(), before + torn);
  AuditReport cut = verify();
  ASSERT_TRUE(cut.fault);
  EXPECT_EQ(cut.fault->line, 2u);
  EXPECT_EQ(cut.fault->reason, "is cut off");

  AuditLog log = open();
  std::string saved = "audit.jsonl.torn-" + std::to_string(kNow);
  EXPECT_EQ(read_file(dir_ / ("audit/" + saved)), torn);
  EXPECT_TRUE(read_file(file()).starts_with(before));
  EXPECT_THAT(read_file(file()), HasSubstr("\"action\":\"audit.torn\",\"target\":\"" + saved));
  EXPECT_EQ(log.head().seq, 2u);
  EXPECT_TRUE(log.append(entry("c")));
  EXPECT_FALSE(verify().fault);
}

TEST_F(AuditRecovery, TornAnywhereTheyComeBackWhole) {
  {
    AuditLog log = open();
    EXPECT_TRUE(log.append(entry("a")));
    EXPECT_TRUE(log.append(entry("b")));
  }
  const std::string whole = read_file(file());
  size_t first = whole.find('\n') + 1;
  for (size_t size : {size_t{0}, size_t{1}, first - 1, first, first + 1, first + 100,
                      whole.size() - 1, whole.size()}) {
    write_file(file(), whole.substr(0, size));
    uint64_t kept = size == whole.size() ? 2 : size >= first ? 1 : 0;
    bool torn = size != 0 && size != first && size != whole.size();
    EXPECT_EQ(open().head().seq, kept + (torn ? 1 : 0)) << size;
    EXPECT_FALSE(verify().fault) << size;
  }
}

TEST_F(AuditRecovery, AWrongLastEntryStopsTheWriter) {
  {
    AuditLog log = open();
    EXPECT_TRUE(log.append(entry("web")));
  }
  const std::string good = read_file(file());
  std::string altered = good;
  altered.replace(altered.find("web"), 3, "bew");
  for (const std::string& content :
       {altered, good + "\n", std::string("\n"), good + "x\n", good + std::string(300'000, 'x')}) {
    write_file(file(), content);
    EXPECT_EQ(refusal().code(), ErrorCode::InvalidState);
    EXPECT_EQ(read_file(file()), content);
  }
}

TEST_F(AuditRecovery, GoOnFromTheRotatedFileWhereThePresentOneIsEmpty) {
  AuditHead head;
  {
    AuditLog log = open();
    EXPECT_TRUE(log.append(entry("a")));
    head = log.head();
  }
  std::filesystem::rename(file(), dir_ / "audit/audit-000000000001.jsonl");
  EXPECT_EQ(open().head(), head);
  write_file(file(), "{\"seq\":2,");
  AuditLog log = open();
  EXPECT_EQ(log.head().seq, 2u);
  AuditReport report = verify();
  EXPECT_FALSE(report.fault);
  EXPECT_EQ(report.entries, 2u);
}

}  // namespace
}  // namespace atl::auth
