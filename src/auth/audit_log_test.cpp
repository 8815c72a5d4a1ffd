#include "auth/audit_log.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/audit_verify.h"
#include "auth/auth_test_support.h"
#include "base/scope_exit.h"

namespace atl::auth {
namespace {

using testing::HasSubstr;

constexpr int64_t kNow = 1'767'323'045'678;

AuditEntry entry(std::string target) {
  return {.at_ms = kNow,
          .actor = "k",
          .tenant = "t",
          .action = "sandbox.create",
          .target = std::move(target),
          .outcome = "ok"};
}

class AuditLogs : public testing::Test {
 protected:
  AuditLog open(AuditOptions options = {}) const {
    auto log = AuditLog::open(dir_ / "audit", kNow, options);
    if (!log) ADD_FAILURE() << log.error().message();
    return std::move(log).value();
  }
  Error refusal() const {
    auto log = AuditLog::open(dir_ / "audit", kNow);
    return log ? Error(ErrorCode::Internal, "accepted") : std::move(log).error();
  }
  AuditReport verify(const AuditAnchors& anchors = {}) const {
    return verify_audit_log(dir_ / "audit", anchors).value();
  }
  std::string file() const { return dir_ / "audit/audit.jsonl"; }

  TempDir dir_;
};

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

TEST_F(AuditLogs, ATornEntryIsSetAsideAndNoted) {
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

TEST_F(AuditLogs, TornAnywhereTheyComeBackWhole) {
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

TEST_F(AuditLogs, AWrongLastEntryStopsTheWriter) {
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
TEST_F(AuditLogs, GoOnFromTheRotatedFileWhereThePresentOneIsEmpty) {
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
