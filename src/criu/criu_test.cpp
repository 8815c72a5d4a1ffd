#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "criu/images.h"
#include "criu/protobuf.h"
#include "criu/rpc.h"
#include "os/file.h"

namespace atl::criu {
namespace {

std::string extent(uint64_t first, uint64_t lower, uint64_t count) {
  ProtoWriter writer;
  writer.number(1, first);
  writer.number(2, lower);
  writer.number(3, count);
  return writer.take();
}

std::string maps(const std::string& users, const std::string& groups) {
  ProtoWriter writer;
  writer.bytes(1, users);
  writer.bytes(2, groups);
  return writer.take();
}

class CriuImages : public testing::Test {
 protected:
  CriuImages() {
    char place[] = "/tmp/atoll-images-XXXXXX";
    path_ = mkdtemp(place);
    dir_.reset(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  ~CriuImages() override {
    unlinkat(dir_.get(), "i.img", 0);
    rmdir(path_.c_str());
  }
  void put(const std::string& message, size_t lie = 0) {
    auto size = static_cast<uint32_t>(message.size() + lie);
    std::string bytes = "MAGICMAG";
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
    UniqueFd file(openat(dir_.get(), "i.img", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    ASSERT_TRUE(os::write_all(file.get(), bytes + message));
  }
  std::string message() const {
    return os::read_file_at(dir_.get(), "i.img").value_or("nothing there").substr(12);
  }
  Result<void> rewrite() { return rewrite_id_maps(dir_.get(), "i.img", 1966080); }

  std::string path_;
  UniqueFd dir_;
};

TEST(CriuProtobuf, ReadsWhatItWrites) {
  ProtoWriter writer;
  writer.number(1, 0);
  writer.number(700, ~uint64_t{0});
  writer.bytes(3, "text");
  std::string bytes = writer.take();
  ProtoReader reader(bytes);
  auto first = reader.next(), second = reader.next(), third = reader.next(), end = reader.next();
  EXPECT_EQ((*first)->value, 0u);
  EXPECT_EQ((*second)->number, 700u);
  EXPECT_EQ((*second)->value, ~uint64_t{0});
  EXPECT_EQ((*third)->bytes, "text");
  EXPECT_FALSE(*end);
}

TEST(CriuProtobuf, RefusesWhatIsCutOff) {
  ProtoWriter writer;
  writer.bytes(3, "some text");
  std::string bytes = writer.take();
  for (size_t size = 1; size < bytes.size(); size++) {
    ProtoReader reader(std::string_view(bytes).substr(0, size));
    EXPECT_FALSE(reader.next()) << size;
  }
  ProtoReader endless("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
  EXPECT_FALSE(endless.next());
}

TEST(CriuRpc, ReadsAnswers) {
  ProtoWriter pid, writer;
  pid.number(1, 4711);
  writer.number(1, 2);
  writer.flag(2, true);
  writer.bytes(4, pid.take());
  auto response = decode_response(writer.take());
  ASSERT_TRUE(response);
  EXPECT_EQ(response->verb, Verb::Restore);
  EXPECT_TRUE(response->success);
  EXPECT_EQ(response->pid, 4711);
}

TEST_F(CriuImages, IdMapsAreWrittenAnew) {
  put(maps(extent(0, 589824, 65536), extent(0, 589824, 65536)));
  ASSERT_TRUE(rewrite());
  EXPECT_EQ(message(), maps(extent(0, 1966080, 65536), extent(0, 1966080, 65536)));
}

TEST_F(CriuImages, OtherMapsAreRefused) {
  std::string good = extent(0, 589824, 65536);
  for (const std::string& bad : {extent(0, 0, 65536), extent(1, 589824, 65536),
                                 extent(0, 589824, 65537), std::string("\x0a")}) {
    put(maps(good, bad));
    EXPECT_FALSE(rewrite());
  }
  put(maps(good, good) + maps(good, good));
  EXPECT_FALSE(rewrite());
  put(maps(good, good), 1);
  EXPECT_FALSE(rewrite());
}

TEST_F(CriuImages, HostNamesAreWrittenAnew) {
  put(maps("old", "domain"));
  ASSERT_TRUE(rewrite_host_name(dir_.get(), "i.img", "a-new-name"));
  EXPECT_EQ(message(), maps("a-new-name", "domain"));
}

TEST(CriuReasons, AreForPeople) {
  std::string log =
      "(00.01) unix: fine\n(00.02) Error (criu/rlimit.c:1): rlimit: Can't setup RLIMIT_NOFILE for "
      "x\n"
      "(00.03) Error (criu/files-reg.c:900): Can't dump ghost file /x of 83886080 size\n";
  EXPECT_EQ(
      explain(log),
      "a deleted file that is still open is larger than 64 MiB (criu: Can't dump ghost file /x "
      "of 83886080 size)");
  EXPECT_EQ(explain("(00.01) Error (criu/a.c:1): Something else\n"), "criu: Something else");
  EXPECT_EQ(explain(""), "criu gave no reason");
}

}  // namespace
}  // namespace atl::criu
