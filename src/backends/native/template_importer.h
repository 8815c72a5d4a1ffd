// Templates from registries and uploads: this process fetches, the launcher unpacks, and this one
// gives the result its name.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "async/worker_thread.h"
#include "atoll/sandbox_backend.h"
#include "backends/native/launcher_client.h"
#include "image/image_plan.h"
#include "image/staging.h"
#include "image/template_import.h"

namespace atl::native {

class TemplateImporter {
 public:
  TemplateImporter(boost::asio::any_io_executor executor, std::shared_ptr<LauncherClient> launcher,
                   std::string data_dir);

  Task<Result<std::shared_ptr<TemplateUpload>>> start_upload();
  Task<Result<ImportedTemplate>> import(ImportInput input);
  // Discards layers that are neither a template's nor among these.
  Task<Result<void>> collect(std::set<std::string> keep);

 private:
  using Progress = std::function<void(const TemplateProgress&)>;

  Task<Result<image::ImagePlan>> fetch(const ImportInput& input, int directory);
  Task<Result<image::Template>> unpack(const ImportInput& input, std::string staging,
                                       std::string plan, ImportedTemplate& counts);
  Task<Result<ImportedTemplate>> publish(const ImportInput& input, image::Template made,
                                         ImportedTemplate counts);
  std::string templates_dir() const { return data_dir_ + "/templates"; }

  boost::asio::any_io_executor executor_;
  std::shared_ptr<LauncherClient> launcher_;
  std::string data_dir_;
  std::map<std::string, Progress> listening_;  // by the name of the staging directory
  async::WorkerThread files_;
  async::WorkerThread downloads_;
};

}  // namespace atl::native
