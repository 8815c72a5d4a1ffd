#include "image/template_import.h"

#include <gmock/gmock.h>

#include "image/image_test_support.h"

namespace atl::image {
namespace {

using testing::HasSubstr;

class TemplateTest : public testing::Test {
 protected:
  TempDir temp_;
  std::string dir_ = temp_ / "templates";
};

TEST_F(TemplateTest, WhatIsSavedIsLoaded) {
  ASSERT_TRUE(save_template(dir_, {"base", {"one", "two"}, "2026-01-02T03:04:05Z", "sha256:ab"}));
  Result<Template> loaded = load_template(dir_, "base");
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_EQ(loaded->name, "base");
  EXPECT_EQ(loaded->layers, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(loaded->created_at, "2026-01-02T03:04:05Z");
  EXPECT_EQ(loaded->digest, "sha256:ab");
  EXPECT_EQ(read_file(dir_ + "/base.json"),
            R"({"name":"base","version":1,"layers":["one","two"],)"
            R"("createdAt":"2026-01-02T03:04:05Z","digest":"sha256:ab","bytes":0})"
            "\n");
}

TEST_F(TemplateTest, SavingAgainMakesANewVersionAndLeavesNoOtherFile) {
  ASSERT_TRUE(save_template(dir_, {"base", {"one"}, "", ""}));
  ASSERT_TRUE(save_template(dir_, {"base", {"two"}, "", ""}));
  EXPECT_EQ(load_template(dir_, "base")->layers.front(), "two");
  auto files = std::filesystem::directory_iterator(dir_);
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST_F(TemplateTest, AMissingTemplateSaysHowToGetIt) {
  Result<Template> loaded = load_template(dir_, "base");
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().code(), ErrorCode::TemplateMissing);
  EXPECT_THAT(loaded.error().message(), HasSubstr("atoll template import"));
  EXPECT_EQ(loaded.error().field(), "template");
}

TEST_F(TemplateTest, NamesThatCouldBePathsAreRefused) {
  for (const char* name : {"", "..", "../base", "a/b", "Base", "-x", "a.json"}) {
    EXPECT_EQ(load_template(dir_, name).error().code(), ErrorCode::InvalidArgument) << name;
    EXPECT_FALSE(save_template(dir_, {name, {"one"}, "", ""})) << name;
  }
}

TEST_F(TemplateTest, ListsInOrderAndIgnoresUnfinishedFiles) {
  EXPECT_TRUE(list_templates(dir_)->empty()) << "no directory yet";
  ASSERT_TRUE(save_template(dir_, {"b", {"one"}, "", ""}));
  ASSERT_TRUE(save_template(dir_, {"a", {"one"}, "", ""}));
  write_file(dir_ + "/.new-1234", "{");
  Result<std::vector<Template>> templates = list_templates(dir_);
  ASSERT_TRUE(templates) << templates.error().message();
  ASSERT_EQ(templates->size(), 2u);
  EXPECT_EQ(templates->at(0).name, "a");
  EXPECT_EQ(templates->at(1).name, "b");
}

TEST_F(TemplateTest, VersionsAreSelectedByNumberAndTag) {
  ASSERT_EQ(*save_template(dir_, {"web", {"one"}, "", ""}), 1u);
  ASSERT_EQ(*save_template(dir_, {"web", {"two"}, "", ""}), 2u);
  ASSERT_TRUE(tag_template(dir_, "web@1", "old"));
  EXPECT_EQ(load_template(dir_, "web")->version, 2u);
  EXPECT_EQ(load_template(dir_, "web@1")->layers.front(), "one");
  EXPECT_EQ(load_template(dir_, "web:old")->version, 1u);
  EXPECT_EQ(load_template(dir_, "web:old")->tags, std::vector<std::string>{"old"});
  EXPECT_EQ(load_template(dir_, "web@3").error().code(), ErrorCode::TemplateMissing);
  EXPECT_EQ(load_template(dir_, "web:new").error().code(), ErrorCode::TemplateMissing);
  for (const char* bad :
       {"web@", "web@0", "web@-1", "web@1x", "web:", "web:a/b", "@1", "web@99999999999"}) {
    EXPECT_EQ(load_template(dir_, bad).error().code(), ErrorCode::InvalidArgument) << bad;
  }
  EXPECT_EQ(list_template_versions(dir_)->size(), 2u);
  ASSERT_TRUE(remove_template(dir_, "web:old"));
  EXPECT_FALSE(load_template(dir_, "web:old"));
  EXPECT_TRUE(load_template(dir_, "web@2"));
  ASSERT_TRUE(remove_template(dir_, "web"));
  EXPECT_TRUE(list_templates(dir_)->empty());
}

TEST_F(TemplateTest, LayersAreHeldByManyOrByOne) {
  auto first = hold_layers(dir_);
  auto second = hold_layers(dir_);
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(hold_layers_alone(dir_)->has_value());
  first->reset();
  second->reset();
  EXPECT_TRUE(hold_layers_alone(dir_)->has_value());
}

TEST_F(TemplateTest, ADamagedManifestIsAnErrorThatNamesTheFile) {
  ASSERT_TRUE(save_template(dir_, {"base", {"one"}, "", ""}));
  for (const char* content : {"", "{", "[]", R"({"name":"base"})",
                              R"({"name":"base","layers":["../x"],"createdAt":"","digest":""})",
                              R"({"name":"other","layers":["x"],"createdAt":"","digest":""})"}) {
    write_file(dir_ + "/base.json", content);
    Result<Template> loaded = load_template(dir_, "base");
    ASSERT_FALSE(loaded.has_value()) << content;
    EXPECT_THAT(loaded.error().message(), HasSubstr("base.json"));
  }
}

TEST_F(TemplateTest, ImportingTwiceReusesBothLayerAndManifest) {
  if (geteuid() != 0) GTEST_SKIP() << "importing needs root";
  ArchiveWriter(temp_ / "a.tar").add(file("f"));
  ArchiveWriter(temp_ / "b.tar").add(file("g"));
  Result<TemplateImport> first = import_template(temp_ / "data", "base", temp_ / "a.tar");
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_FALSE(first->reused);
  Result<TemplateImport> second = import_template(temp_ / "data", "base", temp_ / "a.tar");
  ASSERT_TRUE(second) << second.error().message();
  EXPECT_TRUE(second->reused);
  EXPECT_EQ(second->manifest.layers, first->manifest.layers);
  EXPECT_EQ(second->manifest.digest, first->manifest.digest);
  EXPECT_EQ(second->manifest.version, 1u);
  Result<TemplateImport> other = import_template(temp_ / "data", "base", temp_ / "b.tar");
  ASSERT_TRUE(other) << other.error().message();
  EXPECT_FALSE(other->reused);
  EXPECT_NE(other->manifest.layers, first->manifest.layers);
}

}  // namespace
}  // namespace atl::image
