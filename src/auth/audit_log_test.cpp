#include "auth/audit_log.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "auth/audit_test_support.h"

namespace atl::auth {
namespace {

using testing::HasSubstr;

class AuditLogs : public AuditLogTest {};

TEST_F(AuditLogs, ChainGoesOnAfterARestart) {
  AuditHead head;
  {
    AuditLog log = open();
    EXPECT_EQ(log.head(), AuditHead{});
    EXPECT_TRUE(log.append(entry("a")));
    EXPECT_TRUE(log.append(entry("b")));
    head = log.head();
  }
  AuditLog log = open();
  EXPECT_EQ(log.head(), head);
  EXPECT_TRUE(log.append(entry("c")));
  AuditReport report = verify();
  EXPECT_FALSE(report.fault) << report.fault->reason;
  EXPECT_EQ(report.entries, 3u);
  EXPECT_EQ(report.head, log.head());
}

TEST_F(AuditLogs, ArePrivate) {
  AuditLog log = open();
  struct stat info {};
  ASSERT_EQ(stat(file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  ASSERT_EQ(stat((dir_ / "audit").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
}

TEST_F(AuditLogs, HaveOneWriter) {
  {
    AuditLog log = open();
    EXPECT_EQ(refusal().code(), ErrorCode::Conflict);
  }
  EXPECT_EQ(refusal().message(), "accepted");
}

TEST_F(AuditLogs, RotateBySizeWithTheChainIntact) {
  AuditOptions small{.max_file_bytes = 1000};
  AuditHead head;
  {
    AuditLog log = open(small);
    for (int i = 0; i < 10; i++) EXPECT_TRUE(log.append(entry(std::to_string(i))));
    head = log.head();
  }
  AuditReport report = verify();
  EXPECT_FALSE(report.fault);
  EXPECT_EQ(report.files, 4u);
  EXPECT_EQ(report.entries, 10u);
  EXPECT_EQ(report.head, head);
  std::string second = read_file(dir_ / "audit/audit-000000000006.jsonl");
  std::string first = read_file(dir_ / "audit/audit-000000000003.jsonl");
  auto last = parse_audit_line(first.substr(first.rfind('{'), first.size() - first.rfind('{') - 1));
  ASSERT_TRUE(last);
  EXPECT_THAT(second.substr(0, second.find('\n')), HasSubstr("\"prev\":\"" + last->head.hash));
}

// The crash came between the renaming and the new file, or before its first entry was whole.
TEST_F(AuditLogs, EntriesLargerThanAFileStillFitOne) {
  AuditLog log = open({.max_file_bytes = 1});
  EXPECT_TRUE(log.append(entry("a")));
  EXPECT_TRUE(log.append(entry("b")));
  EXPECT_FALSE(verify().fault);
  EXPECT_EQ(verify().files, 2u);
}

TEST_F(AuditLogs, AWriteThatFailsLeavesNothingBehind) {
  AuditLog log = open();
  EXPECT_TRUE(log.append(entry("a")));
  const std::string before = read_file(file());
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, SIG_IGN);
  rlimit tight{before.size() + 40, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tight);
  auto refused = log.append(entry("b"));
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, SIG_DFL);
  EXPECT_FALSE(refused);
  EXPECT_EQ(read_file(file()), before);
  EXPECT_TRUE(log.append(entry("c")));
  EXPECT_EQ(verify().entries, 2u);
  EXPECT_FALSE(verify().fault);
}

TEST_F(AuditLogs, LinksAndFilesOfOthersAreRefused) {
  std::filesystem::create_directory(dir_ / "audit");
  write_file(dir_ / "elsewhere", "");
  std::filesystem::create_symlink(dir_ / "elsewhere", file());
  EXPECT_EQ(refusal().sys_errno(), ELOOP);
  std::filesystem::remove(file());
  ASSERT_EQ(mkfifo(file().c_str(), 0600), 0);
  EXPECT_THAT(refusal().message(), HasSubstr("regular file"));
  std::filesystem::remove(file());
  write_file(file(), "");
  chmod(file().c_str(), 0620);
  EXPECT_THAT(refusal().message(), HasSubstr("chmod 600"));
}

}  // namespace
}  // namespace atl::auth
