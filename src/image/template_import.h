// From a root filesystem or an image to a template.
#pragma once

#include <sys/types.h>

#include <functional>
#include <set>
#include <string>

#include "image/image_plan.h"
#include "image/import.h"
#include "image/template.h"

namespace atl::image {

struct TemplateImport {
  Template manifest;
  // The template's newest version stood for exactly this before.
  bool reused = false;
  uint64_t entries = 0;  // that were unpacked now
  uint64_t bytes = 0;
  size_t reused_layers = 0;
};

struct ImportProgress {
  size_t layer = 0;  // from 1
  size_t layers = 0;
  uint64_t bytes = 0;  // of the layer's archive
  uint64_t total = 0;
};

// Fetches an image's layers into the directory and says what they are, in a process without
// rights. `have` knows the diff ids of layers that need not be fetched.
using FetchImage = std::function<Result<ImagePlan>(
    int directory, const std::function<bool(const std::string&)>& have)>;

struct TemplateImportOptions {
  std::string data_dir;
  std::string name;
  // The archive of a root filesystem or of an image, or "oci:DIRECTORY". Where `fetch` is set it is
  // only what the template remembers.
  std::string source;
  FetchImage fetch;
  // Whom parsing and fetching run as.
  uid_t uid = 0;
  gid_t gid = 0;
  ImportLimits limits = {};
  std::function<void(const ImportProgress&)> progress;
};

// Needs root and a single thread. A template of that name gets a new version.
Result<TemplateImport> import_template(const TemplateImportOptions& options);
// The archive of a root filesystem.
Result<TemplateImport> import_template(const std::string& data_dir, const std::string& name,
                                       const std::string& archive_path);

// The same for what a server without rights has fetched, on its behalf: layers into the store, and
// what a template of them would be. Publishing it is the server's.
struct StagedImportOptions {
  std::string data_dir;
  std::string staging;  // the name of the import's directory in <data_dir>/incoming
  // Where the layers are fetched already; else the archive "upload" is what to import.
  std::optional<ImagePlan> plan;
  uid_t uid = 0;
  gid_t gid = 0;
  std::function<void(const ImportProgress&)> progress;
};
inline constexpr const char* kUploadFile = "upload";
Result<TemplateImport> import_staged(const StagedImportOptions& options);

// What the imported layers of a plan, from the bottom up, are as a template: without those that
// others hide, with the places that every sandbox needs on top.
Template assemble_template(const std::string& name, const ImagePlan& plan,
                           const std::vector<ImportReport>& layers);
Template assemble_template(const std::string& name, const ImportReport& rootfs);

// Saves a new version, unless the newest is the same.
Result<TemplateImport> publish_template(const std::string& templates_dir, Template made);

}  // namespace atl::image
