// Small images for the tests of src/image and src/registry.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "image/image_documents.h"
#include "image/image_test_support.h"
#include "image/sha256.h"

namespace atl::image {

inline std::string sha256_of(const std::string& bytes) {
  Sha256 hash;
  hash.update(bytes.data(), bytes.size());
  return hash.finish();
}

using LayerCompression = ArchiveWriter::Compression;

// The bytes of a tar archive.
inline std::string tar_of(const std::vector<Entry>& entries,
                          LayerCompression compression = LayerCompression::None) {
  TempDir temp;
  {
    ArchiveWriter writer(temp / "layer", compression);
    for (const Entry& entry : entries) writer.add(entry);
  }
  return read_file(temp / "layer");
}

struct TestBlob {
  std::string bytes;
  std::string digest() const { return sha256_of(bytes); }
  std::string descriptor(const std::string& media_type) const {
    return fmt::format(R"({{"mediaType":"{}","digest":"sha256:{}","size":{}}})", media_type,
                       digest(), bytes.size());
  }
};

// An image in memory: its documents and blobs.
class TestImage {
 public:
  TestImage& layer(const std::vector<Entry>& entries,
                   LayerCompression compression = LayerCompression::None) {
    plain_.push_back(tar_of(entries));
    stored_.push_back(
        {compression == LayerCompression::None ? plain_.back() : tar_of(entries, compression)});
    return *this;
  }
  TestImage& settings(std::string config) {
    settings_ = std::move(config);
    return *this;
  }
  TestImage& platform(std::string os, std::string architecture) {
    os_ = std::move(os);
    architecture_ = std::move(architecture);
    return *this;
  }

  const std::vector<TestBlob>& layers() const { return stored_; }
  std::vector<TestBlob>& layers() { return stored_; }
  std::string diff_id(size_t layer) const { return sha256_of(plain_[layer]); }

  TestBlob config() const {
    std::string diff_ids;
    for (const std::string& plain : plain_) {
      diff_ids += (diff_ids.empty() ? "" : ",") + fmt::format(R"("sha256:{}")", sha256_of(plain));
    }
    return {fmt::format(R"({{"os":"{}","architecture":"{}","config":{},"rootfs":{{"type":"layers",)"
                        R"("diff_ids":[{}]}}}})",
                        os_, architecture_, settings_, diff_ids)};
  }
  TestBlob manifest() const {
    std::string layers;
    for (const TestBlob& blob : stored_) {
      layers += (layers.empty() ? "" : ",") +
                blob.descriptor("application/vnd.oci.image.layer.v1.tar+gzip");
    }
    return {fmt::format(
        R"({{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",)"
        R"("config":{},"layers":[{}]}})",
        config().descriptor("application/vnd.oci.image.config.v1+json"), layers)};
  }
  TestBlob index() const {
    return {fmt::format(R"({{"schemaVersion":2,"manifests":[{}]}})",
                        manifest().descriptor("application/vnd.oci.image.manifest.v1+json"))};
  }

  // An OCI layout.
  void write_layout(const std::string& directory) const {
    std::filesystem::create_directories(directory + "/blobs/sha256");
    auto blob = [&](const TestBlob& item) {
      write_file(directory + "/blobs/sha256/" + item.digest(), item.bytes);
    };
    write_file(directory + "/oci-layout", R"({"imageLayoutVersion":"1.0.0"})");
    write_file(directory + "/index.json", index().bytes);
    blob(manifest());
    blob(config());
    for (const TestBlob& item : stored_) blob(item);
  }

  // What `docker save` writes.
  void write_saved(const std::string& path,
                   LayerCompression compression = LayerCompression::None) const {
    ArchiveWriter writer(path, compression);
    std::string names;
    for (const TestBlob& item : stored_) {
      std::string name = item.digest() + "/layer.tar";
      writer.add(directory(item.digest() + "/"));
      writer.add(file(name, item.bytes));
      names += (names.empty() ? "" : ",") + fmt::format(R"("{}")", name);
    }
    std::string config_name = config().digest() + ".json";
    writer.add(file(config_name, config().bytes));
    writer.add(file("manifest.json",
                    fmt::format(R"([{{"Config":"{}","RepoTags":["x:latest"],"Layers":[{}]}}])",
                                config_name, names)));
  }

 private:
  std::vector<std::string> plain_;
  std::vector<TestBlob> stored_;
  std::string settings_ = "{}";
  std::string os_ = "linux";
  std::string architecture_ = std::string(native_architecture());
};

}  // namespace atl::image
