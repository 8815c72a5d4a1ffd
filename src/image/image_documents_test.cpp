#include "image/image_documents.h"

#include <gmock/gmock.h>

#include "image/oci_test_support.h"

namespace atl::image {
namespace {

using testing::HasSubstr;

const std::string kHex(64, 'a');

std::string descriptor(const std::string& type, const std::string& size = "10") {
  return R"({"mediaType":")" + type + R"(","digest":"sha256:)" + kHex + R"(","size":)" + size + "}";
}
const std::string kLayer = "application/vnd.oci.image.layer.v1.tar+gzip";
const std::string kConfig = "application/vnd.oci.image.config.v1+json";

std::string manifest(const std::string& layers, const std::string& version = "2") {
  return R"({"schemaVersion":)" + version + R"(,"config":)" + descriptor(kConfig) +
         R"(,"layers":[)" + layers + "]}";
}

template <class T>
void expect_refused(const Result<T>& result, ErrorCode code, const std::string& words) {
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code(), code) << result.error().message();
  EXPECT_THAT(result.error().message(), HasSubstr(words));
}

TEST(ImageDocuments, AManifestNamesItsConfigurationAndLayers) {
  auto document = parse_image_document(manifest(descriptor(kLayer) + "," + descriptor(kLayer)));
  ASSERT_TRUE(document) << document.error().message();
  const auto& parsed = std::get<ImageManifest>(*document);
  EXPECT_EQ(parsed.config.digest, kHex);
  ASSERT_EQ(parsed.layers.size(), 2u);
  EXPECT_EQ(parsed.layers[0].size, 10u);
}

TEST(ImageDocuments, DescriptorsThatLieAreRefused) {
  expect_refused(parse_image_document(manifest(descriptor(kLayer, "-1"))),
                 ErrorCode::InvalidArgument, "size");
  expect_refused(parse_image_document(manifest(descriptor(kLayer, "1e3"))),
                 ErrorCode::InvalidArgument, "size");
  expect_refused(parse_image_document(manifest(descriptor(kLayer, "18446744073709551615"))),
                 ErrorCode::InvalidArgument, "size");
  expect_refused(parse_image_document(manifest(descriptor(kLayer, "9223372036854775807"))),
                 ErrorCode::TooLarge, "bytes");
  for (std::string digest :
       {"sha256:../../etc/passwd", "sha256:", "md5:00", "",
        "sha256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}) {
    std::string text =
        manifest(R"({"mediaType":")" + kLayer + R"(","digest":")" + digest + R"(","size":1})");
    expect_refused(parse_image_document(text), ErrorCode::InvalidArgument, "digest");
  }
}

TEST(ImageDocuments, WhatIsNotUnderstoodIsRefused) {
  expect_refused(parse_image_document(""), ErrorCode::InvalidArgument, "JSON");
  expect_refused(parse_image_document("[]"), ErrorCode::InvalidArgument, "object");
  expect_refused(parse_image_document("{}"), ErrorCode::InvalidArgument, "config");
  expect_refused(parse_image_document(manifest(descriptor(kLayer), "1")), ErrorCode::NotSupported,
                 "schema version 2");
  expect_refused(parse_image_document(manifest(descriptor(kLayer + "+encrypted"))),
                 ErrorCode::NotSupported, "+encrypted");
  expect_refused(parse_image_document(R"({"schemaVersion":2,"manifests":[],"layers":[]})"),
                 ErrorCode::InvalidArgument, "both");
  std::string deep(100'000, '[');
  expect_refused(parse_image_document(R"({"config":)" + deep), ErrorCode::InvalidArgument, "JSON");
}

TEST(ImageDocuments, CountsAndSizesHaveBounds) {
  std::string layers;
  for (size_t i = 0; i < kMaxLayers + 1; i++) layers += (i == 0 ? "" : ",") + descriptor(kLayer);
  expect_refused(parse_image_document(manifest(layers)), ErrorCode::TooLarge, "129 entries");
  expect_refused(parse_image_document(std::string(kMaxDocumentBytes + 1, ' ')), ErrorCode::TooLarge,
                 "bytes");
}

TEST(ImageDocuments, TheManifestOfThisProcessorIsChosen) {
  ImageIndex index;
  auto add = [&](std::string os, std::string architecture, std::string variant, char digit) {
    Descriptor manifest{.media_type = "", .digest = std::string(64, digit), .size = 1};
    index.manifests.push_back(
        {manifest, std::move(os), std::move(architecture), std::move(variant)});
  };
  add("unknown", "unknown", "", '0');
  add("windows", "amd64", "", '1');
  add("linux", "arm64", "v8", '2');
  expect_refused(choose_platform(index, "amd64"), ErrorCode::NotSupported,
                 "windows/amd64, linux/arm64/v8");
  add("linux", "amd64", "v3", '3');
  EXPECT_EQ(choose_platform(index, "amd64")->digest[0], '3');
  add("linux", "amd64", "", '4');
  EXPECT_EQ(choose_platform(index, "amd64")->digest[0], '4');
  EXPECT_EQ(choose_platform(index, "arm64")->digest[0], '2');
}

TEST(ImageDocuments, TheConfigurationGivesEnvironmentDirectoryUserAndCommand) {
  auto config = parse_image_config(
      TestImage()
          .layer({file("f")})
          .settings(R"({"Env":["PATH=/bin","A=b=c"],"WorkingDir":"/app","User":"1000:1000",)"
                    R"("Entrypoint":["/init"],"Cmd":null})")
          .config()
          .bytes);
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->env.at("PATH"), "/bin");
  EXPECT_EQ(config->env.at("A"), "b=c");
  EXPECT_EQ(config->workdir, "/app");
  EXPECT_EQ(config->user, "1000:1000");
  EXPECT_EQ(config->entrypoint, std::vector<std::string>{"/init"});
  EXPECT_TRUE(config->cmd.empty());
  EXPECT_EQ(config->diff_ids.size(), 1u);
}

TEST(ImageDocuments, AConfigurationWithTricksIsRefused) {
  auto with = [](const std::string& settings) {
    return parse_image_config(TestImage().layer({file("f")}).settings(settings).config().bytes);
  };
  expect_refused(with(R"({"Env":["=x"]})"), ErrorCode::InvalidArgument, "NAME=VALUE");
  expect_refused(with(R"({"Env":["A"]})"), ErrorCode::InvalidArgument, "NAME=VALUE");
  expect_refused(with(R"({"Env":["A=\u0000"]})"), ErrorCode::InvalidArgument, "NUL");
  expect_refused(with(R"({"Env":"A=b"})"), ErrorCode::InvalidArgument, "list");
  expect_refused(with(R"({"WorkingDir":"../.."})"), ErrorCode::InvalidArgument, "absolute");
  expect_refused(with(R"({"User":7})"), ErrorCode::InvalidArgument, "User");
  expect_refused(parse_image_config(TestImage().config().bytes), ErrorCode::InvalidArgument,
                 "no layers");
}

TEST(ImageDocuments, TheListOfASavedArchive) {
  auto images = parse_saved_images(R"([{"Config":"c.json","Layers":["a/layer.tar"]}])");
  ASSERT_TRUE(images) << images.error().message();
  EXPECT_EQ(images->front().config, "c.json");
  expect_refused(parse_saved_images("{}"), ErrorCode::InvalidArgument, "list");
  expect_refused(parse_saved_images("[]"), ErrorCode::InvalidArgument, "list");
  expect_refused(parse_saved_images(R"([{"Config":"c.json"}])"), ErrorCode::InvalidArgument,
                 "no layers");
}

}  // namespace
}  // namespace atl::image
