// Images into the layer store: layouts, saved archives, and layers that take away from others.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "image/archive_note.h"
#include "image/export.h"
#include "image/oci_test_support.h"
#include "image/template_import.h"
#include "os/id_map.h"

namespace atl::image {
namespace {

using testing::HasSubstr;

class ImageImportTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "importing needs root";
  }

  Result<TemplateImport> import(const std::string& source, const std::string& name = "web") {
    TemplateImportOptions options;
    options.data_dir = data_;
    options.name = name;
    options.source = source;
    options.uid = options.gid = 64199;
    return import_template(options);
  }
  Result<TemplateImport> import_layout(const TestImage& image, const std::string& name = "web") {
    std::filesystem::remove_all(temp_ / "layout");
    image.write_layout(temp_ / "layout");
    return import("oci:" + (temp_ / "layout"), name);
  }

  // In the layer at `depth` of the template, from the bottom up.
  std::string in_layer(const Result<TemplateImport>& made, size_t depth, const std::string& path) {
    return data_ + "/layers/" + made->manifest.layers.at(depth) + "/" + path;
  }
  size_t layers_on_disk() {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(data_ + "/layers")) {
      count += entry.path().filename().string()[0] != '.';
    }
    return count;
  }

  void expect_refused(const Result<TemplateImport>& result, ErrorCode code,
                      const std::string& words) {
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code(), code) << result.error().message();
    EXPECT_THAT(result.error().message(), HasSubstr(words));
    EXPECT_FALSE(load_template(data_ + "/templates", "web")) << "no partial template";
    EXPECT_TRUE(std::filesystem::is_empty(data_ + "/incoming"));
  }

  static bool is_whiteout(const std::string& path) {
    struct stat info {};
    return lstat(path.c_str(), &info) == 0 && S_ISCHR(info.st_mode) &&
           info.st_rdev == makedev(0, 0);
  }
  static bool is_opaque(const std::string& path) {
    char value = 0;
    return getxattr(path.c_str(), "trusted.overlay.opaque", &value, 1) == 1 && value == 'y';
  }

  TempDir temp_;
  std::string data_ = temp_ / "data";
};

#define ASSERT_IMPORTED(result) ASSERT_TRUE(result) << result.error().message()

TEST_F(ImageImportTest, EachLayerIsOneDirectoryWithThePlacesOnTop) {
  auto made = import_layout(TestImage()
                                .layer({file("bottom", "1")}, LayerCompression::Gzip)
                                .layer({file("middle", "2")}, LayerCompression::Zstd)
                                .layer({file("top", "3")}));
  ASSERT_IMPORTED(made);
  ASSERT_EQ(made->manifest.layers.size(), 4u);
  EXPECT_EQ(read_file(in_layer(made, 0, "bottom")), "1");
  EXPECT_EQ(read_file(in_layer(made, 1, "middle")), "2");
  EXPECT_EQ(read_file(in_layer(made, 2, "top")), "3");
  EXPECT_EQ(made->manifest.layers.back(), kPlacesLayer);
  EXPECT_TRUE(std::filesystem::is_character_file(in_layer(made, 3, "dev/null")));
  EXPECT_FALSE(std::filesystem::exists(in_layer(made, 0, "dev")));
  EXPECT_EQ(made->manifest.bytes, 3u);
  EXPECT_TRUE(std::filesystem::is_empty(data_ + "/incoming"));
}

TEST_F(ImageImportTest, TheImagesSettingsBecomeTheTemplatesDefaults) {
  auto made = import_layout(
      TestImage()
          .layer({file("f")})
          .settings(R"({"Env":["PATH=/x"],"WorkingDir":"/app","User":"node:staff","Cmd":["sh"]})"));
  ASSERT_IMPORTED(made);
  Result<Template> loaded = load_template(data_ + "/templates", "web");
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->defaults.env.at("PATH"), "/x");
  EXPECT_EQ(loaded->defaults.workdir, "/app");
  EXPECT_EQ(loaded->defaults.user, "node");
  EXPECT_EQ(loaded->defaults.cmd, std::vector<std::string>{"sh"});
}

TEST_F(ImageImportTest, SavedArchivesAndTarsOfLayoutsGiveTheSameLayers) {
  TestImage image;
  image.layer({file("a")}).layer({file("b")});
  auto layout = import_layout(image);
  ASSERT_IMPORTED(layout);
  image.write_saved(temp_ / "saved.tar");
  auto saved = import(temp_ / "saved.tar", "saved");
  ASSERT_IMPORTED(saved);
  EXPECT_EQ(saved->manifest.layers, layout->manifest.layers);
  EXPECT_EQ(saved->reused_layers, 2u);
  image.write_saved(temp_ / "saved.tar.gz", LayerCompression::Gzip);
  auto packed = import(temp_ / "saved.tar.gz", "packed");
  ASSERT_IMPORTED(packed);
  EXPECT_EQ(packed->manifest.layers, layout->manifest.layers);
  std::string command = fmt::format("tar -C {} -cf {} blobs index.json oci-layout",
                                    temp_ / "layout", temp_ / "layout.tar");
  ASSERT_EQ(system(command.c_str()), 0);
  auto tarred = import(temp_ / "layout.tar", "tarred");
  ASSERT_IMPORTED(tarred);
  EXPECT_EQ(tarred->manifest.layers, layout->manifest.layers);
  EXPECT_EQ(layers_on_disk(), 3u);
}

TEST_F(ImageImportTest, LayersAreSharedByWhatTheyHold) {
  ASSERT_IMPORTED(import_layout(
      TestImage().layer({file("common")}, LayerCompression::Gzip).layer({file("one")}), "one"));
  auto second = import_layout(
      TestImage().layer({file("common")}, LayerCompression::Zstd).layer({file("two")}), "two");
  ASSERT_IMPORTED(second);
  EXPECT_EQ(second->reused_layers, 1u);
  EXPECT_EQ(layers_on_disk(), 4u);
}

TEST_F(ImageImportTest, WhiteoutsBecomeOverlaysOwn) {
  auto made = import_layout(TestImage()
                                .layer({file("etc/gone"), file("etc/kept"), file("var/old/f")})
                                .layer({file("etc/.wh.gone", ""), file("var/old/.wh..wh..opq", ""),
                                        file("var/old/new"), file(".wh..wh.aufs", "")}));
  ASSERT_IMPORTED(made);
  EXPECT_TRUE(is_whiteout(in_layer(made, 1, "etc/gone")));
  EXPECT_TRUE(is_opaque(in_layer(made, 1, "var/old")));
  EXPECT_FALSE(is_opaque(in_layer(made, 1, "etc")));
  EXPECT_EQ(read_file(in_layer(made, 1, "var/old/new")), "x");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(in_layer(made, 1, ""))) {
    EXPECT_THAT(entry.path().filename(), Not(testing::StartsWith(".wh.")));
  }
}

TEST_F(ImageImportTest, AWhiteoutBesideTheSameNameAnewHidesOnlyWhatLiesBelow) {
  for (bool whiteout_first : {true, false}) {
    std::vector<Entry> entries = {directory("d"), file("d/new"), file("f", "new")};
    std::vector<Entry> whiteouts = {file(".wh.d", ""), file(".wh.f", "")};
    entries.insert(whiteout_first ? entries.begin() : entries.end(), whiteouts.begin(),
                   whiteouts.end());
    auto made = import_layout(TestImage().layer({file("d/old")}).layer(entries));
    ASSERT_IMPORTED(made);
    EXPECT_TRUE(is_opaque(in_layer(made, 1, "d"))) << whiteout_first;
    EXPECT_EQ(read_file(in_layer(made, 1, "f")), "new");
  }
}

TEST_F(ImageImportTest, ALayerThatHidesAllBelowIsTheBottom) {
  auto made = import_layout(
      TestImage().layer({file("old")}).layer({file(".wh..wh..opq", ""), file("new")}));
  ASSERT_IMPORTED(made);
  ASSERT_EQ(made->manifest.layers.size(), 2u);
  EXPECT_EQ(read_file(in_layer(made, 0, "new")), "x");
}

TEST_F(ImageImportTest, OneLayerTwiceIsStackedOnce) {
  auto made = import_layout(
      TestImage().layer({file("a")}).layer({}).layer({file("b")}).layer({}).layer({}));
  ASSERT_IMPORTED(made);
  EXPECT_EQ(made->manifest.layers.size(), 4u);
}

TEST_F(ImageImportTest, WhiteoutsCannotLeaveTheLayer) {
  auto made = import_layout(
      TestImage().layer({link_to("out", "/"), link_to("up", ".."), file("out/.wh.secret", ""),
                         file("up/.wh.other", ""), link_to("loop", "loop")}));
  ASSERT_IMPORTED(made);
  EXPECT_FALSE(std::filesystem::exists("/secret"));
  EXPECT_FALSE(std::filesystem::exists(data_ + "/layers/other"));
  EXPECT_TRUE(is_whiteout(in_layer(made, 0, "secret")));
}

TEST_F(ImageImportTest, WhiteoutsOfNothingAreRefused) {
  for (const char* name : {"a/.wh.", "a/.wh..", ".wh..."}) {
    expect_refused(import_layout(TestImage().layer({file(name, "")})), ErrorCode::InvalidArgument,
                   "no name");
  }
}

TEST_F(ImageImportTest, OpaqueDirectoriesAreMarkedInTheLayerOnly) {
  std::filesystem::create_directory(temp_ / "host");
  auto made = import_layout(
      TestImage().layer({link_to("link", temp_ / "host"), file("link/.wh..wh..opq", "")}));
  EXPECT_FALSE(made.has_value());
  EXPECT_FALSE(is_opaque(temp_ / "host"));
}

TEST_F(ImageImportTest, DeviceNodesOfAnImageAreNoWhiteouts) {
  auto made = import_layout(TestImage().layer({{.path = "dev0", .type = AE_IFCHR}, file("f")}));
  ASSERT_IMPORTED(made);
  EXPECT_FALSE(std::filesystem::exists(in_layer(made, 0, "dev0")));
}

TEST_F(ImageImportTest, TamperedBlobsAreRefusedByName) {
  TestImage image;
  image.layer({file("f", "honest")});
  image.write_layout(temp_ / "layout");
  std::string blob = (temp_ / "layout/blobs/sha256/") + image.layers()[0].digest();
  std::string bytes = read_file(blob);
  bytes[600] ^= 1;
  write_file(blob, bytes);
  expect_refused(import("oci:" + (temp_ / "layout")), ErrorCode::InvalidArgument,
                 "sha256:" + image.diff_id(0));
  EXPECT_EQ(layers_on_disk(), 1u) << "the places alone";
  write_file(blob, bytes + "more");
  expect_refused(import("oci:" + (temp_ / "layout")), ErrorCode::InvalidArgument, "promised");
  std::filesystem::remove(blob);
  expect_refused(import("oci:" + (temp_ / "layout")), ErrorCode::InvalidArgument, "incomplete");
}

TEST_F(ImageImportTest, TamperedDocumentsAreRefused) {
  TestImage image;
  image.layer({file("f")});
  image.write_layout(temp_ / "layout");
  std::string config = (temp_ / "layout/blobs/sha256/") + image.config().digest();
  std::string bytes = read_file(config);
  bytes[bytes.find("linux")] = 'L';
  write_file(config, bytes);
  expect_refused(import("oci:" + (temp_ / "layout")), ErrorCode::InvalidArgument, "do not match");
}

TEST_F(ImageImportTest, LayoutsFullOfLinksAreRefused) {
  TestImage image;
  image.layer({file("f")});
  image.write_layout(temp_ / "layout");
  std::filesystem::rename(temp_ / "layout/index.json", temp_ / "index.json");
  std::filesystem::create_symlink(temp_ / "index.json", temp_ / "layout/index.json");
  EXPECT_FALSE(import("oci:" + (temp_ / "layout")));
  std::filesystem::remove(temp_ / "layout/index.json");
  ASSERT_EQ(mkfifo((temp_ / "layout/index.json").c_str(), 0600), 0);
  expect_refused(import("oci:" + (temp_ / "layout")), ErrorCode::InvalidArgument, "regular file");
}

TEST_F(ImageImportTest, ImagesOfOtherProcessorsAreRefused) {
  expect_refused(import_layout(TestImage().layer({file("f")}).platform("linux", "s390x")),
                 ErrorCode::NotSupported, "linux/s390x");
  expect_refused(import_layout(TestImage().layer({file("f")}).platform("windows", "amd64")),
                 ErrorCode::NotSupported, "windows/");
}

TEST_F(ImageImportTest, MoreLayersThanDiffIdsAreRefused) {
  TestImage image;
  image.layer({file("f")});
  image.layers().push_back(image.layers()[0]);
  expect_refused(import_layout(image), ErrorCode::InvalidArgument, "2 layers");
}

TEST_F(ImageImportTest, SavedArchivesThatPointElsewhereAreRefused) {
  auto saved = [&](const std::string& config, const std::string& layer) {
    ArchiveWriter writer(temp_ / "saved.tar");
    writer.add(file("manifest.json",
                    fmt::format(R"([{{"Config":"{}","Layers":["{}"]}}])", config, layer)));
    writer.add(link_to("loop", "loop"));
    writer.add(file("config.json", TestImage().layer({file("f")}).config().bytes));
  };
  saved("/etc/passwd", "x");
  expect_refused(import(temp_ / "saved.tar"), ErrorCode::InvalidArgument, "incomplete");
  saved("config.json", "../../etc/passwd");
  expect_refused(import(temp_ / "saved.tar"), ErrorCode::InvalidArgument, "incomplete");
  saved("config.json", "loop");
  expect_refused(import(temp_ / "saved.tar"), ErrorCode::InvalidArgument, "circles");
}

TEST_F(ImageImportTest, TheLimitsAreForAllLayersTogether) {
  TestImage image;
  image.layer({file("a", std::string(600, 'x'))}).layer({file("b", std::string(600, 'x'))});
  image.write_layout(temp_ / "layout");
  TemplateImportOptions options;
  options.data_dir = data_;
  options.name = "web";
  options.source = "oci:" + (temp_ / "layout");
  options.limits.max_bytes = 1000;
  expect_refused(import_template(options), ErrorCode::TooLarge, "unpacks to more than");
}

TEST_F(ImageImportTest, ANewImportOfANameIsANewVersion) {
  ASSERT_IMPORTED(import_layout(TestImage().layer({file("a")})));
  auto again = import_layout(TestImage().layer({file("a")}));
  ASSERT_IMPORTED(again);
  EXPECT_TRUE(again->reused);
  auto other = import_layout(TestImage().layer({file("a")}).settings(R"({"Env":["A=b"]})"));
  ASSERT_IMPORTED(other);
  EXPECT_EQ(other->manifest.version, 2u);
  EXPECT_TRUE(load_template(data_ + "/templates", "web@1")->defaults.env.empty());
  EXPECT_EQ(load_template(data_ + "/templates", "web")->version, 2u);
}

TEST_F(ImageImportTest, ARootFilesystemMayHaveFilesNamedLikeAnImages) {
  ArchiveWriter(temp_ / "rootfs.tar").add(file("blobs/x")).add(file("bin/sh"));
  auto made = import(temp_ / "rootfs.tar");
  ASSERT_IMPORTED(made);
  EXPECT_EQ(read_file(in_layer(made, 0, "blobs/x")), "x");
  ArchiveWriter(temp_ / "wh.tar").add(file(".wh.etc", "kept"));
  auto whiteouts = import(temp_ / "wh.tar", "other");
  ASSERT_IMPORTED(whiteouts);
  EXPECT_EQ(read_file(in_layer(whiteouts, 0, ".wh.etc")), "kept");
}

TEST_F(ImageImportTest, AnExportHoldsWhatASandboxWouldSee) {
  auto made = import_layout(
      TestImage()
          .layer({file("etc/gone"),
                  file("etc/kept", "old"),
                  {.path = "home/u", .type = AE_IFDIR, .mode = 0700, .uid = 1000, .gid = 1000},
                  {.path = "su", .mode = 04755, .content = "x"}})
          .layer({file("etc/.wh.gone", ""), file("etc/kept", "new"), link_to("l", "/etc/kept"),
                  hardlink_to("again", "etc/kept")}));
  ASSERT_IMPORTED(made);
  pid_t pid = fork();  // it moves into mounts of its own
  if (pid == 0) {
    ExportPlan plan{.layers = {}, .place = temp_ / "merged", .file = -1};
    for (const auto& layer : made->manifest.layers) {
      plan.layers.insert(plan.layers.begin(), data_ + "/layers/" + layer);
    }
    mkdir(plan.place.c_str(), 0700);
    plan.file = open((temp_ / "out.tar.zst").c_str(), O_WRONLY | O_CREAT, 0600);
    auto written = export_layers(plan);
    if (!written) fprintf(stderr, "%s\n", written.error().message().c_str());
    _exit(written ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  ASSERT_EQ(status, 0);
  UniqueFd archive(open((temp_ / "out.tar.zst").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(read_note(archive.get()).value(), "");
  ASSERT_TRUE(append_note(archive.get(), R"({"a":1})"));
  EXPECT_EQ(read_note(archive.get()).value(), R"({"a":1})");
  auto again = import(temp_ / "out.tar.zst", "again");
  ASSERT_IMPORTED(again);
  EXPECT_EQ(read_file(in_layer(again, 0, "etc/kept")), "new");
  EXPECT_EQ(read_file(in_layer(again, 0, "again")), "new");
  EXPECT_FALSE(std::filesystem::exists(in_layer(again, 0, "etc/gone")));
  EXPECT_EQ(std::filesystem::read_symlink(in_layer(again, 0, "l")), "/etc/kept");
  struct stat info {};
  ASSERT_EQ(lstat(in_layer(again, 0, "home/u").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, os::kDiskIdBase + 1000);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  ASSERT_EQ(lstat(in_layer(again, 0, "su").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 04755u);
}

}  // namespace
}  // namespace atl::image
