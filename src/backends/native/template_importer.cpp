#include "backends/native/template_importer.h"

#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <set>
#include <utility>

#include "base/log.h"
#include "base/scope_exit.h"
#include "image/archive_note.h"
#include "image/template_file.h"
#include "os/file.h"
#include "registry/pull.h"
#include "wire/codec.h"

namespace atl::native {
namespace {

namespace asio = boost::asio;

constexpr uint64_t kMaxUploadBytes = uint64_t{32} << 30;

Result<void> run_alone(const std::function<void()>& run) {
  run();
  return {};
}

class Upload final : public TemplateUpload {
 public:
  Upload(async::WorkerThread& files, image::Staging staging, UniqueFd file)
      : files_(files), staging_(std::move(staging)), file_(std::move(file)) {}

  Task<Result<void>> write(std::string bytes) override {
    size_ += bytes.size();
    if (size_ > kMaxUploadBytes) {
      co_return fail(ErrorCode::TooLarge, "an archive has at most 32 GiB");
    }
    auto work = [fd = file_.get(), bytes = std::move(bytes)]() -> Result<void> {
      return os::write_all(fd, bytes);
    };
    co_return co_await files_.run(std::move(work), async::Company::Alone);
  }
  const image::Staging& staging() const { return staging_; }
  Result<std::string> note() const { return image::read_note(file_.get()); }

 private:
  async::WorkerThread& files_;
  image::Staging staging_;
  UniqueFd file_;
  uint64_t size_ = 0;
};

image::Template template_of(const std::string& name, const wire::Imported& made) {
  image::Template result;
  result.name = name;
  result.layers = made.layers;
  result.created_at = image::now_rfc3339();
  result.digest = made.digest;
  result.bytes = made.template_bytes;
  for (const std::string& line : made.env) {
    size_t equals = line.find('=');
    if (equals != line.npos) result.defaults.env[line.substr(0, equals)] = line.substr(equals + 1);
  }
  result.defaults.workdir = made.workdir;
  result.defaults.user = made.user;
  result.defaults.entrypoint = made.entrypoint;
  result.defaults.cmd = made.cmd;
  return result;
}

Result<void> check_name(const std::string& name) {
  ATOLL_ASSIGN(image::TemplateReference reference, image::parse_template_reference(name));
  if (reference.name == name) return {};
  return fail(Error(ErrorCode::InvalidArgument, "give a name without a version or a tag")
                  .with_field("name"));
}

}  // namespace

TemplateImporter::TemplateImporter(asio::any_io_executor executor,
                                   std::shared_ptr<LauncherClient> launcher, std::string data_dir)
    : executor_(std::move(executor)),
      launcher_(std::move(launcher)),
      data_dir_(std::move(data_dir)),
      collecting_(executor_),
      files_(run_alone),
      downloads_(run_alone) {
  launcher_->on_import_progress([this](const wire::ImportProgress& now) {
    auto listener = listening_.find(now.staging);
    if (listener == listening_.end() || !listener->second) return;
    listener->second({"unpack", now.layer, now.layers, now.bytes, now.total});
  });
}

Task<Result<std::shared_ptr<TemplateUpload>>> TemplateImporter::start_upload() {
  ATOLL_CO_ASSIGN(image::Staging staging, image::Staging::create(data_dir_, geteuid(), getegid()));
  UniqueFd file(openat(staging.dir(), image::kUploadFile,
                       O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) co_return fail_errno("openat", image::kUploadFile);
  co_return std::make_shared<Upload>(files_, std::move(staging), std::move(file));
}

Task<Result<image::ImagePlan>> TemplateImporter::fetch(const ImportInput& input, int directory) {
  ATOLL_CO_ASSIGN(registry::Reference reference, registry::parse_reference(input.source));
  registry::PullOptions options;
  options.registry.credentials = {input.user, input.password};
  options.registry.insecure = input.insecure;
  options.directory = directory;
  options.have = [layers = data_dir_ + "/layers/"](const std::string& diff_id) {
    return access((layers + image::layer_id(image::LayerKind::Diff, diff_id)).c_str(), F_OK) == 0;
  };
  options.progress = [executor = executor_, tell = input.progress,
                      last = std::make_shared<std::chrono::steady_clock::time_point>()](
                         const registry::DownloadProgress& now) {
    auto at = std::chrono::steady_clock::now();
    if (!tell || (now.bytes < now.total && at - *last < std::chrono::milliseconds(200))) return;
    *last = at;
    TemplateProgress progress{"download", static_cast<uint32_t>(now.blobs_done),
                              static_cast<uint32_t>(now.blobs), now.bytes, now.total};
    asio::post(executor, [tell, progress] { tell(progress); });
  };
  auto work = [reference, options]() { return registry::pull(reference, options); };
  co_return co_await downloads_.run(std::move(work), async::Company::Alone);
}

Task<Result<image::Template>> TemplateImporter::unpack(const ImportInput& input,
                                                       std::string staging, std::string plan,
                                                       ImportedTemplate& counts) {
  listening_[staging] = input.progress;
  ScopeExit forget([this, staging] { listening_.erase(staging); });
  wire::ImportRequest request{.staging = staging, .plan = std::move(plan)};
  auto made = co_await launcher_->call<wire::Imported>(std::move(request), kNoReplyLimit);
  if (!made) co_return fail(std::move(made).error());
  counts.entries = made->entries;
  counts.bytes = made->bytes;
  counts.reused_layers = made->reused_layers;
  image::Template result = template_of(input.name, *made);
  result.source = input.source;
  co_return result;
}

Task<Result<ImportedTemplate>> TemplateImporter::publish(const ImportInput& input,
                                                         image::Template made,
                                                         ImportedTemplate counts) {
  auto work = [dir = templates_dir(), made = std::move(made),
               tag = input.tag]() -> Result<image::TemplateImport> {
    ATOLL_ASSIGN(image::TemplateImport published, image::publish_template(dir, made));
    if (!tag.empty()) ATOLL_TRY(image::tag_template(dir, published.manifest.key(), tag));
    return published;
  };
  ATOLL_CO_ASSIGN(image::TemplateImport published,
                  co_await files_.run(std::move(work), async::Company::Alone));
  counts.key = published.manifest.key();
  counts.reused = published.reused;
  co_return counts;
}

Task<Result<ImportedTemplate>> TemplateImporter::import(ImportInput input) {
  ATOLL_CO_TRY(check_name(input.name));
  // From here on until the template has its name, nobody removes layers.
  ATOLL_CO_ASSIGN(UniqueFd held, co_await hold());
  ImportedTemplate counts;
  auto work = [&]() -> Task<Result<image::Template>> {
    if (auto* upload = dynamic_cast<Upload*>(input.upload.get())) {
      ATOLL_CO_ASSIGN(counts.note, upload->note());
      ATOLL_CO_ASSIGN(image::Template made,
                      co_await unpack(input, upload->staging().id(), "", counts));
      if (!counts.note.empty()) {
        ATOLL_CO_ASSIGN(made.defaults, image::decode_defaults(counts.note));
      }
      co_return made;
    }
    ATOLL_CO_ASSIGN(image::Staging staging,
                    image::Staging::create(data_dir_, geteuid(), getegid()));
    ATOLL_CO_ASSIGN(image::ImagePlan plan, co_await fetch(input, staging.dir()));
    co_return co_await unpack(input, staging.id(), wire::encode(plan), counts);
  };
  auto made = co_await work();
  if (!made) co_return fail(std::move(made).error());
  co_return co_await publish(input, std::move(*made), counts);
}

Task<Result<UniqueFd>> TemplateImporter::hold() {
  auto turn = co_await collecting_.lock();
  co_return image::hold_layers(templates_dir());
}

Task<Result<void>> TemplateImporter::collect(std::set<std::string> keep) {
  auto turn = co_await collecting_.lock();
  ATOLL_CO_ASSIGN(auto alone, image::hold_layers_alone(templates_dir()));
  if (!alone) co_return Result<void>();  // somebody imports; the next time will do
  keep.insert(image::kPlacesLayer);
  ATOLL_CO_ASSIGN(auto templates, image::list_template_versions(templates_dir()));
  for (const image::Template& item : templates) keep.insert(item.layers.begin(), item.layers.end());
  wire::CollectRequest request{.keep = {keep.begin(), keep.end()}};
  ATOLL_CO_TRY(co_await launcher_->tell(std::move(request)));
  sweep_behind();
  co_return Result<void>();
}

// One at a time: others would only wait for it, in places that snapshots want.
void TemplateImporter::sweep_behind() {
  sweep_due_ = true;
  if (std::exchange(sweeping_, true)) return;
  auto sweep = [this]() -> Task<void> {
    while (std::exchange(sweep_due_, false)) {
      auto swept = co_await launcher_->tell(wire::SweepRequest{}, kNoReplyLimit);
      if (swept) continue;
      log(LogLevel::Warning, "cannot remove unused layers", {{"error", swept.error().message()}});
    }
    sweeping_ = false;
  };
  asio::co_spawn(executor_, sweep, asio::detached);
}

}  // namespace atl::native
