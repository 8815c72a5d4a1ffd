#include "image/import.h"

#include <gmock/gmock.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include <set>

#include "image/image_test_support.h"
#include "os/id_map.h"

namespace atl::image {
namespace {

using testing::HasSubstr;
using Compression = ArchiveWriter::Compression;
using Format = ArchiveWriter::Format;

class ImportTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "importing needs root";
  }

  Result<ImportReport> import(const std::vector<Entry>& entries) {
    {
      ArchiveWriter writer(archive_);
      for (const Entry& entry : entries) writer.add(entry);
    }
    return import_archive();
  }

  Result<ImportReport> import_archive() { return import_rootfs(options_); }

  // The path of something in the layer that the archive became.
  std::string in_layer(const Result<ImportReport>& report, const std::string& path) {
    return options_.layers_dir + "/" + report->layer_id + "/" + path;
  }

  // Everything in the layers directory but the lock.
  std::set<std::string> published() {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(options_.layers_dir)) {
      if (entry.path().filename() != ".lock") names.insert(entry.path().filename());
    }
    return names;
  }

  void expect_refused(const Result<ImportReport>& result, ErrorCode code, const char* words) {
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code(), code) << result.error().message();
    EXPECT_THAT(result.error().message(), HasSubstr(words));
    EXPECT_TRUE(published().empty());
  }

  static struct stat status_of(const std::string& path) {
    struct stat info {};
    EXPECT_EQ(lstat(path.c_str(), &info), 0) << path;
    return info;
  }

  TempDir temp_;
  std::string archive_ = temp_ / "rootfs.tar";
  ImportOptions options_{.archive_path = archive_, .layers_dir = temp_ / "data/layers"};
};

#define ASSERT_IMPORTED(result) ASSERT_TRUE(result) << result.error().message()

TEST_F(ImportTest, KeepsContentModesOwnersTimesAndLinks) {
  Result<ImportReport> report =
      import({directory("./", 0700),
              directory("./usr/bin", 0751),
              file("./usr/bin/hello", "hello\n"),
              {.path = "./home", .type = AE_IFDIR, .mode = 01777, .uid = 1000, .gid = 100},
              link_to("./bin", "usr/bin"),
              hardlink_to("./usr/bin/again", "./usr/bin/hello")});
  ASSERT_IMPORTED(report);
  EXPECT_EQ(report->entries, 6u);
  EXPECT_EQ(report->bytes, 6u);
  EXPECT_FALSE(report->reused);
  EXPECT_EQ(read_file(in_layer(report, "bin/hello")), "hello\n");
  struct stat hello = status_of(in_layer(report, "usr/bin/hello"));
  EXPECT_EQ(hello.st_uid, os::kDiskIdBase);
  EXPECT_EQ(hello.st_mtime, 1'000'000'000);
  EXPECT_EQ(hello.st_nlink, 2u);
  struct stat home = status_of(in_layer(report, "home"));
  EXPECT_EQ(home.st_uid, os::kDiskIdBase + 1000);
  EXPECT_EQ(home.st_gid, os::kDiskIdBase + 100);
  EXPECT_EQ(home.st_mode & 07777, 01777u);
  EXPECT_EQ(home.st_mtime, 1'000'000'000);
  EXPECT_EQ(status_of(in_layer(report, "usr/bin")).st_mode & 07777, 0751u);
  EXPECT_EQ(status_of(in_layer(report, "")).st_mode & 07777, 0755u) << "the root must be open";
}

TEST_F(ImportTest, SetUserIdRootNeverMeansHostRoot) {
  Result<ImportReport> report = import({{.path = "su", .mode = 06755, .content = "#!"}});
  ASSERT_IMPORTED(report);
  struct stat su = status_of(in_layer(report, "su"));
  EXPECT_EQ(su.st_mode & 07777, 06755u);
  EXPECT_EQ(su.st_uid, os::kDiskIdBase);
  EXPECT_EQ(su.st_gid, os::kDiskIdBase);
}

TEST_F(ImportTest, NothingInALayerBelongsToAHostAccount) {
  Result<ImportReport> report = import({directory("a"), file("a/b"), link_to("c", "a")});
  ASSERT_IMPORTED(report);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(in_layer(report, ""))) {
    struct stat info = status_of(entry.path());
    EXPECT_GE(info.st_uid, os::kDiskIdBase) << entry.path();
    EXPECT_GE(info.st_gid, os::kDiskIdBase) << entry.path();
  }
}

TEST_F(ImportTest, RefusesNamesThatClimbOut) {
  expect_refused(import({file("../escaped")}), ErrorCode::InvalidArgument, "../escaped");
  expect_refused(import({file("a/../../escaped")}), ErrorCode::InvalidArgument, "escaped");
  EXPECT_FALSE(std::filesystem::exists(options_.layers_dir + "/escaped"));
}

TEST_F(ImportTest, AbsoluteNamesLandInTheLayer) {
  Result<ImportReport> report = import({file("/atoll-import-test-absolute", "inside")});
  ASSERT_IMPORTED(report);
  EXPECT_EQ(read_file(in_layer(report, "atoll-import-test-absolute")), "inside");
  EXPECT_FALSE(std::filesystem::exists("/atoll-import-test-absolute"));
}

TEST_F(ImportTest, SymbolicLinksLeadNowhereButIntoTheLayer) {
  std::string outside = temp_ / "outside";
  std::filesystem::create_directory(outside);
  write_file(outside + "/victim", "untouched");
  Result<ImportReport> report =
      import({link_to("root", "/"), file("root/through-root", "inside"), directory("up"),
              link_to("up/up", "../../../../../../.."), file("up/up/through-up", "inside")});
  ASSERT_IMPORTED(report);
  EXPECT_EQ(read_file(in_layer(report, "through-root")), "inside");
  EXPECT_EQ(read_file(in_layer(report, "through-up")), "inside");
  EXPECT_FALSE(std::filesystem::exists("/through-root"));
  EXPECT_FALSE(std::filesystem::exists("/through-up"));

  Result<ImportReport> refused = import({link_to("out", outside), file("out/victim", "hit")});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), ErrorCode::NotFound) << "no such directory in the layer";
  EXPECT_EQ(read_file(outside + "/victim"), "untouched");
}

TEST_F(ImportTest, AFileReplacesASymbolicLinkInsteadOfWritingThroughIt) {
  Result<ImportReport> report =
      import({file("target", "old"), link_to("name", "target"), file("name", "new")});
  ASSERT_IMPORTED(report);
  EXPECT_EQ(read_file(in_layer(report, "target")), "old");
  EXPECT_EQ(read_file(in_layer(report, "name")), "new");
}

TEST_F(ImportTest, HardLinksCannotReachOutside) {
  std::string secret = temp_ / "secret";
  write_file(secret, "secret");
  expect_refused(import({hardlink_to("stolen", secret)}), ErrorCode::NotFound, "stolen");
  expect_refused(import({hardlink_to("stolen", "../../../../../../../.." + secret)}),
                 ErrorCode::InvalidArgument, "leads out");
  EXPECT_EQ(status_of(secret).st_nlink, 1u);
}

TEST_F(ImportTest, AHardLinkToASymbolicLinkOutsideLinksTheLinkItself) {
  std::string secret = temp_ / "secret";
  write_file(secret, "secret");
  Result<ImportReport> report = import({link_to("l", secret), hardlink_to("h", "l")});
  if (report) EXPECT_TRUE(S_ISLNK(status_of(in_layer(report, "h")).st_mode));
  EXPECT_EQ(status_of(secret).st_nlink, 1u);
}

TEST_F(ImportTest, ReplacesASymlinkedDevAndMountPoints) {
  std::string host = temp_ / "host";
  std::filesystem::create_directory(host);
  Result<ImportReport> report =
      import({link_to("dev", host), link_to("proc", host), link_to("sys", "/etc"),
              link_to("tmp", host), link_to(".atoll", host), file("workspace", "not a directory")});
  ASSERT_IMPORTED(report);
  for (const char* name :
       {"dev", "dev/pts", "dev/shm", "proc", "sys", "tmp", ".atoll", "workspace"}) {
    EXPECT_TRUE(S_ISDIR(status_of(in_layer(report, name)).st_mode)) << name;
  }
  EXPECT_TRUE(std::filesystem::is_empty(host));
  EXPECT_EQ(status_of(in_layer(report, "tmp")).st_mode & 07777, 01777u);
  EXPECT_EQ(status_of(in_layer(report, ".atoll/agent")).st_mode, S_IFREG | 0555u);
  EXPECT_EQ(status_of(in_layer(report, "workspace")).st_uid, os::kDiskIdBase + 1000);
}

TEST_F(ImportTest, DeviceNodesAreOursAndNotTheArchives) {
  Result<ImportReport> report = import({directory("dev"),
                                        {.path = "dev/sda", .type = AE_IFBLK},
                                        {.path = "mem", .type = AE_IFCHR},
                                        link_to("dev/null", "/etc/passwd"),
                                        directory("dev/zero"),
                                        file("dev/zero/x"),
                                        {.path = "pipe", .type = AE_IFIFO}});
  ASSERT_IMPORTED(report);
  EXPECT_EQ(report->skipped_devices, 2u);
  EXPECT_FALSE(std::filesystem::exists(in_layer(report, "dev/sda")));
  EXPECT_FALSE(std::filesystem::exists(in_layer(report, "mem")));
  EXPECT_TRUE(S_ISFIFO(status_of(in_layer(report, "pipe")).st_mode));
  struct stat null = status_of(in_layer(report, "dev/null"));
  EXPECT_EQ(null.st_mode, S_IFCHR | 0666u);
  EXPECT_EQ(null.st_rdev, makedev(1, 3));
  EXPECT_EQ(null.st_uid, os::kDiskIdBase);
  EXPECT_EQ(status_of(in_layer(report, "dev/zero")).st_rdev, makedev(1, 5));
  EXPECT_EQ(std::filesystem::read_symlink(in_layer(report, "dev/ptmx")), "pts/ptmx");
}

TEST_F(ImportTest, RefusesOwnersThatNoSandboxHas) {
  expect_refused(import({{.path = "far", .uid = 65536}}), ErrorCode::InvalidArgument, "far");
  expect_refused(import({{.path = "far", .gid = 4'000'000'000}}), ErrorCode::InvalidArgument,
                 "far");
}

TEST_F(ImportTest, KeepsTheAttributesThatMatterAndCountsTheOthers) {
  // VFS_CAP_REVISION_2 with cap_net_raw.
  std::string capability(
      "\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", 20);
  Result<ImportReport> report =
      import({{.path = "note", .xattr = "user.note", .xattr_value = "hi"},
              {.path = "ping", .xattr = "security.capability", .xattr_value = capability},
              {.path = "opaque", .xattr = "trusted.overlay.opaque", .xattr_value = "y"},
              {.path = "redirect", .xattr = "user.overlay.redirect", .xattr_value = "/"}});
  ASSERT_IMPORTED(report);
  EXPECT_EQ(report->skipped_attributes, 2u);
  char value[64];
  EXPECT_EQ(getxattr(in_layer(report, "note").c_str(), "user.note", value, sizeof value), 2);
  // Revision 3 carries the root it is valid for: 4 bytes more, and never host root.
  EXPECT_EQ(getxattr(in_layer(report, "ping").c_str(), "security.capability", value, sizeof value),
            24);
  EXPECT_EQ(listxattr(in_layer(report, "opaque").c_str(), value, sizeof value), 0);
  EXPECT_EQ(listxattr(in_layer(report, "redirect").c_str(), value, sizeof value), 0);
}

TEST_F(ImportTest, NamesAreBytes) {
  for (Format format : {Format::Pax, Format::Gnu}) {
    {
      ArchiveWriter writer(archive_, Compression::None, format);
      writer.add(file("caf\xe9", "latin1")).add(file("caf\xc3\xa9", "utf8"));
    }
    Result<ImportReport> report = import_archive();
    ASSERT_IMPORTED(report);
    EXPECT_EQ(read_file(in_layer(report, "caf\xe9")), "latin1");
    EXPECT_EQ(read_file(in_layer(report, "caf\xc3\xa9")), "utf8");
  }
}

TEST_F(ImportTest, ErrorsAboutHostileNamesAreSafeToPrint) {
  Result<ImportReport> report = import({{.path = "a\x1b[2J\xff\nb", .uid = 70000}});
  ASSERT_FALSE(report.has_value());
  EXPECT_THAT(report.error().message(), HasSubstr("a?[2J\xEF\xBF\xBD?b"));
}

TEST_F(ImportTest, ReadsEveryCompressionWhateverTheFileIsCalled) {
  for (Compression compression :
       {Compression::None, Compression::Gzip, Compression::Xz, Compression::Zstd}) {
    ArchiveWriter(archive_, compression).add(file("f", "content"));
    Result<ImportReport> report = import_archive();
    ASSERT_IMPORTED(report);
    EXPECT_EQ(read_file(in_layer(report, "f")), "content");
  }
}

TEST_F(ImportTest, RefusesWhatIsNotATarArchive) {
  options_.layers_dir = temp_ / "layers";
  ArchiveWriter(archive_, Compression::Bzip2).add(file("f"));
  expect_refused(import_archive(), ErrorCode::InvalidArgument, "not a tar archive");
  write_file(archive_, "just some text, nothing more");
  expect_refused(import_archive(), ErrorCode::InvalidArgument, "not a tar archive");
  write_file(archive_, "");
  expect_refused(import_archive(), ErrorCode::InvalidArgument, "archive");
}

TEST_F(ImportTest, RefusesAnArchiveCutShort) {
  for (Compression compression :
       {Compression::None, Compression::Gzip, Compression::Xz, Compression::Zstd}) {
    std::string content(300'000, 'x');
    for (size_t i = 0; i < content.size(); i++) content[i] = static_cast<char>(i * i >> 3);
    ArchiveWriter(archive_, compression).add(file("a")).add(file("b", content));
    std::filesystem::resize_file(archive_, std::filesystem::file_size(archive_) * 2 / 3);
    if (compression == Compression::None) std::filesystem::resize_file(archive_, 100'000);
    expect_refused(import_archive(), ErrorCode::InvalidArgument, "cut short");
  }
}

TEST_F(ImportTest, StopsAtTheByteLimit) {
  options_.limits.max_bytes = 1000;
  expect_refused(import({file("a", std::string(600, 'a')), file("b", std::string(600, 'b'))}),
                 ErrorCode::TooLarge, "1000 bytes, at b");
  EXPECT_TRUE(import({file("a", std::string(1000, 'a'))}).has_value());
}

TEST_F(ImportTest, StopsAtTheEntryLimit) {
  options_.limits.max_entries = 100;
  std::vector<Entry> entries;
  for (int i = 0; i < 101; i++) entries.push_back(file(std::to_string(i), ""));
  expect_refused(import(entries), ErrorCode::TooLarge, "more than 100 entries");
}

TEST_F(ImportTest, ABombStopsLongBeforeItIsWritten) {
  options_.limits.max_bytes = 1 << 20;
  ArchiveWriter(archive_, Compression::Zstd).add(file("zeros", std::string(256 << 20, '\0')));
  EXPECT_LT(std::filesystem::file_size(archive_), 1u << 20);
  expect_refused(import_archive(), ErrorCode::TooLarge, "at zeros");
}

TEST_F(ImportTest, TheSameArchiveIsImportedOnce) {
  Result<ImportReport> first = import({file("f")});
  ASSERT_IMPORTED(first);
  write_file(in_layer(first, "marker"), "still here");
  Result<ImportReport> second = import_archive();
  ASSERT_IMPORTED(second);
  EXPECT_TRUE(second->reused);
  EXPECT_EQ(second->layer_id, first->layer_id);
  EXPECT_EQ(second->digest, first->digest);
  EXPECT_EQ(read_file(in_layer(second, "marker")), "still here");
  Result<ImportReport> other = import({file("f", "other")});
  ASSERT_IMPORTED(other);
  EXPECT_NE(other->layer_id, first->layer_id);
}

TEST_F(ImportTest, RemovesWhatACrashLeftBehind) {
  std::filesystem::create_directories(options_.layers_dir + "/.import-dead/a/b/c");
  write_file(options_.layers_dir + "/.import-dead/a/b/c/f", "x");
  Result<ImportReport> report = import({file("f")});
  ASSERT_IMPORTED(report);
  EXPECT_EQ(published(), std::set<std::string>{report->layer_id});
}

TEST_F(ImportTest, LayersCanBeSearchedButNotListed) {
  ASSERT_IMPORTED(import({file("f")}));
  EXPECT_EQ(status_of(options_.layers_dir).st_mode & 07777, 0711u);
  EXPECT_EQ(status_of(options_.layers_dir).st_uid, 0u);
  EXPECT_EQ(status_of(temp_ / "data").st_mode & 07777, 0700u);
}

TEST_F(ImportTest, ImportsOfOneArchiveInTwoProcessesMakeOneLayer) {
  ArchiveWriter(archive_).add(file("f", std::string(8 << 20, 'x')));
  std::vector<pid_t> importers;
  for (int i = 0; i < 3; i++) {
    pid_t pid = fork();
    if (pid == 0) _exit(import_archive() ? 0 : 1);
    importers.push_back(pid);
  }
  for (pid_t pid : importers) {
    int status = -1;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(published().size(), 1u);
}

TEST_F(ImportTest, LeavesNoDescriptorsAndNoChildren) {
  auto open_descriptors = [] {
    auto fds = std::filesystem::directory_iterator("/proc/self/fd");
    return std::distance(begin(fds), end(fds));
  };
  auto before = open_descriptors();
  ASSERT_IMPORTED(import({file("f")}));
  ASSERT_FALSE(import({file("../f")}).has_value());
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST_F(ImportTest, SaysWhatIsWrongWithThePath) {
  options_.archive_path = temp_ / "missing.tar";
  EXPECT_EQ(import_archive().error().code(), ErrorCode::NotFound);
  ASSERT_EQ(mkfifo((temp_ / "fifo").c_str(), 0600), 0);
  options_.archive_path = temp_ / "fifo";
  EXPECT_EQ(import_archive().error().code(), ErrorCode::InvalidArgument);
}

TEST_F(ImportTest, WithoutRootSaysSo) {
  ASSERT_EQ(seteuid(65534), 0);
  Result<ImportReport> report = import_archive();
  ASSERT_EQ(seteuid(0), 0);
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code(), ErrorCode::PermissionDenied);
  EXPECT_THAT(report.error().message(), HasSubstr("sudo"));
}

}  // namespace
}  // namespace atl::image
