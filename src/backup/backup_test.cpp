#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <fstream>

#include "backup/archive_reader.h"
#include "backup/create.h"
#include "backup/restore.h"
#include "base/unique_fd.h"
#include "image/sha256.h"
#include "store/data_lock.h"
#include "store/offline.h"
#include "store/schema.h"
#include "store/store.h"

namespace atl::backup {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

std::string read_file(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_file(const fs::path& path, std::string_view text, mode_t mode = 0600) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
  chmod(path.c_str(), mode);
}

std::string sha256(std::string_view text) {
  image::Sha256 hash;
  hash.update(text.data(), text.size());
  return hash.finish();
}

// An archive as nobody of us would write it.
struct Entry {
  std::string path;
  std::string content;
  bool symlink = false;
};

void write_archive(const std::string& path, const std::vector<Entry>& entries) {
  archive* out = archive_write_new();
  archive_write_add_filter_zstd(out);
  archive_write_set_format_pax_restricted(out);
  archive_write_open_filename(out, path.c_str());
  for (const Entry& item : entries) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, item.path.c_str());
    archive_entry_set_perm(entry, 0600);
    archive_entry_set_filetype(entry, item.symlink ? AE_IFLNK : AE_IFREG);
    if (item.symlink) archive_entry_set_symlink(entry, item.content.c_str());
    archive_entry_set_size(entry, item.symlink ? 0 : static_cast<int64_t>(item.content.size()));
    archive_write_header(out, entry);
    if (!item.symlink) archive_write_data(out, item.content.data(), item.content.size());
    archive_entry_free(entry);
  }
  archive_write_close(out);
  archive_write_free(out);
}

Manifest manifest_of(const std::vector<Entry>& entries) {
  Manifest manifest;
  manifest.version = "0.1.0";
  manifest.schema = store::newest_schema();
  manifest.created_at = "2026-01-02T03:04:05Z";
  for (const Entry& entry : entries) {
    manifest.files.push_back(
        {.path = entry.path, .bytes = entry.content.size(), .sha256 = sha256(entry.content)});
  }
  return manifest;
}

class BackupTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/atoll-backup-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    dir_ = name;
    data_ = dir_ / "data";
    target_ = dir_ / "target";
    file_ = dir_ / "backup.tar.zst";
  }
  void TearDown() override { fs::remove_all(dir_); }

  void put_sandbox(store::Store& store, std::string id, std::string record) {
    boost::asio::co_spawn(
        io_, store.write({.put_sandbox = store::Write::Sandbox{std::move(id), std::move(record)}}),
        [](std::exception_ptr, Result<void> put) { EXPECT_TRUE(put); });
    io_.restart();
    io_.run();
  }

  void put_sandboxes(const fs::path& data, const std::vector<std::string>& ids) {
    fs::create_directories(data / "state");
    auto store = store::Store::open(data / "state/atoll.db");
    ASSERT_TRUE(store) << store.error().message();
    for (const std::string& id : ids) {
      put_sandbox(**store, id, "record of " + id);
      fs::create_directories(data / "pool/sandboxes" / id / "upper");
    }
  }

  void fill() {
    put_sandboxes(data_, {"sandbox-a", "sandbox-b"});
    write_file(data_ / "state/master.key", "master", 0400);
    write_file(data_ / "state/.half-written", "no");
    write_file(data_ / "audit/2026/11.log", "who did what", 0640);
    write_file(data_ / "api-key", "sk-atoll-1", 0640);
    write_file(data_ / "templates/base.json", "{}");
    fs::create_symlink("/etc/passwd", data_ / "state/link");
  }

  Manifest backup() {
    UniqueFd out(open(file_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    auto manifest = write_offline_backup(data_, out.get());
    EXPECT_TRUE(manifest) << manifest.error().message();
    return manifest ? *manifest : Manifest();
  }

  Result<Restored> restore_into(const fs::path& target, Existing existing = Existing::Refuse) {
    RestoreOptions options;
    options.file = file_;
    options.data_dir = target;
    options.server_uid = geteuid();
    options.server_gid = getegid();
    options.existing = existing;
    return restore(options);
  }

  // Why it was refused; and nothing may have been made.
  std::string refusal() {
    auto restored = restore_into(target_);
    if (restored) return "restored";
    EXPECT_FALSE(fs::exists(target_ / "state"));
    return restored.error().message();
  }

  std::vector<std::string> names(const fs::path& dir) {
    std::vector<std::string> found;
    for (const auto& item : fs::directory_iterator(dir)) found.push_back(item.path().filename());
    return found;
  }

  fs::path dir_, data_, target_, file_;
  boost::asio::io_context io_;  // outlives every store: its thread posts here
};

TEST_F(BackupTest, BringsBackStateKeysAndAuditLog) {
  fill();
  Manifest made = backup();
  EXPECT_EQ(made.schema, store::newest_schema());
  EXPECT_EQ(made.sandboxes, 2u);
  std::vector<std::string> paths;
  for (const File& file : made.files) paths.push_back(file.path);
  EXPECT_THAT(paths,
              ElementsAre("state/atoll.db", "state/master.key", "audit/2026/11.log", "api-key"));
  auto restored = restore_into(target_);
  ASSERT_TRUE(restored) << restored.error().message();
  EXPECT_EQ(restored->aside, "");
  EXPECT_THAT(names(target_), UnorderedElementsAre("lock", "state", "audit", "api-key"));
  EXPECT_THAT(names(target_ / "state"), UnorderedElementsAre("atoll.db", "master.key"));
  EXPECT_EQ(read_file(target_ / "state/master.key"), "master");
  EXPECT_EQ(read_file(target_ / "audit/2026/11.log"), "who did what");
  EXPECT_EQ(read_file(target_ / "api-key"), "sk-atoll-1");
  struct stat info {};
  stat((target_ / "state/master.key").c_str(), &info);
  EXPECT_EQ(info.st_mode & 0777, 0400u);
  stat((target_ / "state").c_str(), &info);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  EXPECT_THAT(store::inspect(target_ / "state/atoll.db")->sandboxes,
              ElementsAre("sandbox-a", "sandbox-b"));
}

TEST_F(BackupTest, HasWhatIsOnlyInTheWriteAheadLog) {
  fill();
  // As kill -9 leaves it: with a log that nobody has merged.
  auto store = store::Store::open(data_ / "state/atoll.db");
  put_sandbox(**store, "sandbox-c", "late");
  fs::copy(data_, dir_ / "crashed", fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  ASSERT_TRUE(fs::exists(dir_ / "crashed/state/atoll.db-wal"));
  data_ = dir_ / "crashed";
  EXPECT_EQ(backup().sandboxes, 3u);
  EXPECT_THAT(names(data_), testing::Not(testing::Contains(testing::StartsWith(".backup"))));
}

TEST_F(BackupTest, NeedsADatabase) {
  fs::create_directories(data_);
  UniqueFd out(open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  auto refused = write_offline_backup(data_, out.get());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("atoll.db"));
  EXPECT_FALSE(write_offline_backup(dir_ / "nowhere", out.get()));
}

TEST_F(BackupTest, WaitsForNobodyWhereAServerRuns) {
  fill();
  backup();
  auto lock = store::lock_data_dir(data_);
  ASSERT_TRUE(lock);
  ASSERT_TRUE(store::name_holder(*lock, "/run/x.sock"));
  UniqueFd out(open("/dev/null", O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(write_offline_backup(data_, out.get()).error().code(), ErrorCode::Conflict);
  EXPECT_EQ(restore_into(data_, Existing::MoveAside).error().code(), ErrorCode::Conflict);
  EXPECT_EQ(*store::holder_of(data_), "/run/x.sock");
}

TEST_F(BackupTest, ReplacesADatabaseOnlyWhenToldAndKeepsIt) {
  fill();
  backup();
  put_sandboxes(data_, {"sandbox-later"});
  write_file(data_ / "api-key", "newer");
  auto refused = restore_into(data_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Conflict);
  EXPECT_THAT(refused.error().message(), HasSubstr("--force"));
  EXPECT_EQ(store::inspect(data_ / "state/atoll.db")->sandboxes.size(), 3u);

  auto restored = restore_into(data_, Existing::MoveAside);
  ASSERT_TRUE(restored) << restored.error().message();
  EXPECT_THAT(restored->unknown_sandboxes, ElementsAre("sandbox-later"));
  EXPECT_THAT(names(data_ / "pool/sandboxes"), UnorderedElementsAre("sandbox-a", "sandbox-b"));
  EXPECT_EQ(store::inspect(data_ / "state/atoll.db")->sandboxes.size(), 2u);
  EXPECT_EQ(read_file(data_ / "api-key"), "sk-atoll-1");

  fs::path aside = restored->aside;
  EXPECT_THAT(names(aside), UnorderedElementsAre("state", "audit", "api-key"));
  EXPECT_EQ(store::inspect(aside / "state/atoll.db")->sandboxes.size(), 3u);
  EXPECT_TRUE(fs::exists(data_ / "pool/aside" / aside.filename() / "sandbox-later/upper"));
  EXPECT_EQ(read_file(aside / "api-key"), "newer");
}

TEST_F(BackupTest, ClearsAwayWhatACrashedOneLeft) {
  fill();
  backup();
  write_file(target_ / ".restore-0123/state/atoll.db", "half");
  ASSERT_TRUE(restore_into(target_));
  EXPECT_THAT(names(target_), UnorderedElementsAre("lock", "state", "audit", "api-key"));
}

TEST_F(BackupTest, RefusesACutOffBackup) {
  fill();
  backup();
  std::string whole = read_file(file_);
  for (size_t size = 0; size < whole.size(); size += 1 + whole.size() / 40) {
    write_file(file_, std::string_view(whole).substr(0, size));
    EXPECT_THAT(refusal(), HasSubstr("not a whole backup")) << size << " of " << whole.size();
  }
}

TEST_F(BackupTest, NeverRestoresChangedBytes) {
  fill();
  backup();
  std::string whole = read_file(file_);
  std::string key = read_file(data_ / "state/master.key");
  for (size_t at = 0; at < whole.size(); at += 1 + whole.size() / 60) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    write_file(file_, changed);
    fs::remove_all(target_);
    // A bit of the archive's own frame may not matter; what is restored must be right.
    if (restore_into(target_)) {
      EXPECT_EQ(read_file(target_ / "state/master.key"), key);
      EXPECT_EQ(store::inspect(target_ / "state/atoll.db")->sandboxes.size(), 2u);
    } else {
      EXPECT_FALSE(fs::exists(target_ / "state"));
    }
  }
}

TEST_F(BackupTest, RefusesWhatItsManifestDoesNotSay) {
  fill();
  Entry database{"state/atoll.db", read_file(data_ / "state/atoll.db")};
  Entry key{"state/master.key", "master"};
  auto manifest = [](const Manifest& made) {
    return Entry{"manifest.json", encode_manifest(made)};
  };
  Manifest good = manifest_of({database, key});

  write_archive(file_, {database, key, manifest(good)});
  auto accepted = read_archive(file_, kCheckOnly);
  EXPECT_TRUE(accepted) << accepted.error().message();

  write_archive(file_, {database, {"state/master.key", "Master"}, manifest(good)});
  EXPECT_THAT(refusal(), HasSubstr("'state/master.key' is not what its manifest says"));
  write_archive(file_, {database, manifest(good)});
  EXPECT_THAT(refusal(), HasSubstr("it has 1 files, its manifest 2"));
  write_archive(file_, {database, {"state/other", "x"}, manifest(good)});
  EXPECT_THAT(refusal(), HasSubstr("'state/master.key' is missing"));
  write_archive(file_, {database, key, key, manifest(good)});
  EXPECT_THAT(refusal(), HasSubstr("comes twice"));
  write_archive(file_, {database, key});
  EXPECT_THAT(refusal(), HasSubstr("no manifest"));
  write_archive(file_, {database, manifest(good), key});
  EXPECT_THAT(refusal(), HasSubstr("follows its manifest"));
  write_archive(file_, {key, manifest(manifest_of({key}))});
  EXPECT_THAT(refusal(), HasSubstr("no database"));
  write_archive(file_, {database, {"manifest.json", R"({"product":"atoll","format":1})"}});
  EXPECT_THAT(refusal(), HasSubstr("manifest is damaged"));
  write_archive(file_, {database, {"manifest.json", R"({"product":"other"})"}});
  EXPECT_THAT(refusal(), HasSubstr("another program's"));
  write_archive(file_, {database, {"manifest.json", R"({"product":"atoll","format":2})"}});
  EXPECT_THAT(refusal(), HasSubstr("newer Atoll"));
}

TEST_F(BackupTest, RefusesNamesThatLeadElsewhere) {
  fill();
  Entry database{"state/atoll.db", read_file(data_ / "state/atoll.db")};
  for (const char* name : {"../x", "state/../../x", "/etc/x", "state/", "state//x", "x", "layers/x",
                           "state/.hidden", "state/atoll.db-wal", "api-key/x", "sandboxes/a/b"}) {
    Entry bad{name, "x"};
    write_archive(
        file_, {database, bad, {"manifest.json", encode_manifest(manifest_of({database, bad}))}});
    EXPECT_THAT(refusal(), HasSubstr("not a whole backup")) << name;
  }
  write_archive(file_, {database, {"state/link", "/etc/passwd", true}});
  EXPECT_THAT(refusal(), HasSubstr("not a plain file"));
}

TEST_F(BackupTest, RefusesADatabaseThatIsDamagedOrNewer) {
  Entry junk{"state/atoll.db", "not a database at all"};
  write_archive(file_, {junk, {"manifest.json", encode_manifest(manifest_of({junk}))}});
  EXPECT_THAT(refusal(), HasSubstr("damaged"));

  fill();
  Entry database{"state/atoll.db", read_file(data_ / "state/atoll.db")};
  Manifest manifest = manifest_of({database});
  manifest.schema = 99;
  write_archive(file_, {database, {"manifest.json", encode_manifest(manifest)}});
  EXPECT_THAT(refusal(), HasSubstr("newer Atoll (0.1.0, schema 99)"));
  manifest.schema = 1;
  write_archive(file_, {database, {"manifest.json", encode_manifest(manifest)}});
  EXPECT_THAT(refusal(), HasSubstr("another schema than it says"));
}

TEST_F(BackupTest, BringsBackAnOlderVersion) {
  fs::create_directories(data_ / "state");
  fs::copy_file(ATOLL_SOURCE_DIR "/tests/data/state_v1.db", data_ / "state/atoll.db");
  EXPECT_EQ(backup().schema, 1);
  ASSERT_TRUE(restore_into(target_));
  EXPECT_TRUE(store::Store::open(target_ / "state/atoll.db"));
}

}  // namespace
}  // namespace atl::backup
