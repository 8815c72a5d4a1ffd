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
#include "http/async_mutex.h"
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
  // Discards layers that are neither a template's nor among these; answers before they are gone.
  Task<Result<void>> collect(std::set<std::string> keep);
  // While the result lives, nobody discards layers.
  Task<Result<UniqueFd>> hold();

 private:
  using Progress = std::function<void(const TemplateProgress&)>;

  Task<Result<image::ImagePlan>> fetch(const ImportInput& input, int directory);
  Task<Result<image::Template>> unpack(const ImportInput& input, std::string staging,
                                       std::string plan, ImportedTemplate& counts);
  Task<Result<ImportedTemplate>> publish(const ImportInput& input, image::Template made,
                                         ImportedTemplate counts);
  void sweep_behind();
  std::string templates_dir() const { return data_dir_ + "/templates"; }

  boost::asio::any_io_executor executor_;
  std::shared_ptr<LauncherClient> launcher_;
  std::string data_dir_;
  std::map<std::string, Progress> listening_;  // by the name of the staging directory
  // A hold is waited for by the thread, for other processes. That we collect must never be what it
  // waits for.
  http::AsyncMutex collecting_;
  bool sweeping_ = false;
  bool sweep_due_ = false;
  async::WorkerThread files_;
  async::WorkerThread downloads_;
};

}  // namespace atl::native
