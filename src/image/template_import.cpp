#include "image/template_import.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "image/inflate.h"
#include "image/layout.h"
#include "image/planner.h"
#include "image/staging.h"
#include "image/tree.h"
#include "os/file.h"

namespace atl::image {
namespace {

constexpr std::string_view kLayoutPrefix = "oci:";
constexpr size_t kPeekBytes = 8192;
constexpr uint64_t kMaxPlainBytes = uint64_t{32} << 30;
constexpr const char* kPlainFile = "plain";

TemplateDefaults defaults_of(const ImagePlan& plan) {
  TemplateDefaults defaults;
  for (const std::string& line : plan.env) {
    size_t equals = line.find('=');
    if (equals != line.npos) defaults.env[line.substr(0, equals)] = line.substr(equals + 1);
  }
  // An image that names no directory means the root, where a sandbox has a better place.
  if (plan.workdir != "/") defaults.workdir = plan.workdir;
  defaults.user = plan.user;
  // A group by its name would have to be looked up inside; the account's own group will do.
  size_t colon = plan.user.find(':');
  if (colon != plan.user.npos &&
      plan.user.find_first_not_of("0123456789", colon + 1) != plan.user.npos) {
    defaults.user = plan.user.substr(0, colon);
  }
  defaults.entrypoint = plan.entrypoint;
  defaults.cmd = plan.cmd;
  return defaults;
}

// One import under way.
class Importer {
 public:
  Importer(const TemplateImportOptions& options, LayerStore store, Staging staging)
      : options_(options), store_(std::move(store)), staging_(std::move(staging)) {}

  // What is in the staging directory.
  Result<Template> run_staged(const std::optional<ImagePlan>& plan) {
    if (plan) return import_plan(*plan, -1);
    ATOLL_ASSIGN(UniqueFd upload,
                 os::open_beneath(staging_.dir(), kUploadFile, O_RDONLY | O_NONBLOCK));
    struct stat info {};
    if (fstat(upload.get(), &info) != 0) return fail_errno("fstat", kUploadFile);
    if (!S_ISREG(info.st_mode)) return fail(ErrorCode::InvalidArgument, "not a regular file");
    return import_archive(upload.get());
  }

  Result<Template> run() {
    if (options_.fetch) return fetch_image();
    if (options_.source.starts_with(kLayoutPrefix)) {
      return import_layout(options_.source.substr(kLayoutPrefix.size()));
    }
    ATOLL_ASSIGN(UniqueFd archive, open_archive(options_.source));
    return import_archive(archive.get());
  }

  uint64_t entries = 0;
  uint64_t bytes = 0;
  size_t reused_layers = 0;

 private:
  Planner planner_for(std::function<Result<ImagePlan>(const OpenFile&)> work) const {
    return {.uid = options_.uid, .gid = options_.gid, .work = std::move(work), .open = {}};
  }

  Result<Template> fetch_image() {
    auto have = [this](const std::string& diff_id) {
      return store_.has(layer_id(LayerKind::Diff, diff_id));
    };
    Planner planner =
        planner_for([&](const OpenFile&) { return options_.fetch(staging_.dir(), have); });
    ATOLL_ASSIGN(ImagePlan plan, run_planner(planner));
    return import_plan(plan, -1);
  }

  Result<Template> import_layout(const std::string& path) {
    UniqueFd dir(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!dir.valid()) return fail_errno("open", path);
    Planner planner = planner_for([](const OpenFile& ask) -> Result<ImagePlan> {
      DirectoryFiles files(ask);
      return plan_layout(files, PlanOrigin::Layout);
    });
    planner.open = [&](const std::string& name) { return open_layout_file(dir.get(), name); };
    Result<ImagePlan> plan = run_planner(planner);
    if (!plan && plan.error().code() == ErrorCode::NotFound) {
      return fail(ErrorCode::InvalidArgument, path + " is no OCI layout: it has no index.json");
    }
    if (!plan) return fail(std::move(plan).error());
    return import_plan(*plan, dir.get());
  }

  Result<Template> import_archive(int archive) {
    ATOLL_ASSIGN(bool maybe, begins_like_image(archive));
    if (maybe) {
      ATOLL_ASSIGN(UniqueFd plain, plain_archive(archive));
      int fd = plain.valid() ? plain.get() : archive;
      Result<ImagePlan> plan = run_planner(planner_for([&](const OpenFile&) -> Result<ImagePlan> {
        ATOLL_ASSIGN(TarFiles files, TarFiles::scan(fd));
        return plan_layout(files, PlanOrigin::Archive);
      }));
      if (plan) return import_plan(*plan, fd);
      if (plan.error().code() != ErrorCode::NotFound) return fail(std::move(plan).error());
    }
    return import_rootfs_archive(archive);
  }

  Result<bool> begins_like_image(int archive) {
    ATOLL_ASSIGN(Range range, whole_file(archive));
    ATOLL_ASSIGN(UniqueFd nowhere, make_nowhere());
    // What cannot be decompressed is reported by the import proper.
    auto beginning = peek_archive(range, nowhere.get(), kPeekBytes, {});
    return beginning && may_be_image(*beginning);
  }

  // A decompressed copy, where the archive is compressed: an image's layers are found by their
  // places in it.
  Result<UniqueFd> plain_archive(int archive) {
    ATOLL_ASSIGN(Range range, whole_file(archive));
    char beginning[8] = {};
    ssize_t size = pread(archive, beginning, sizeof beginning, 0);
    if (size < 0) return fail_errno("read", options_.source);
    if (detect_compression({beginning, static_cast<size_t>(size)}) == Compression::None) {
      return UniqueFd();
    }
    UniqueFd plain(openat(staging_.dir(), kPlainFile, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!plain.valid()) return fail_errno("openat", kPlainFile);
    ATOLL_ASSIGN(UniqueFd nowhere, make_nowhere());
    ATOLL_TRY(inflate_archive(range, plain.get(), nowhere.get(), kMaxPlainBytes, {}));
    return plain;
  }

  Result<UniqueFd> make_nowhere() const {
    // Of the directory's owner, who removes it.
    Attributes owned{0700, options_.uid, options_.gid};
    return ensure_directory(staging_.dir(), "nowhere", owned, Existing::Reset);
  }

  Result<Template> import_rootfs_archive(int archive) {
    LayerSource source;
    ATOLL_ASSIGN(source.bytes, whole_file(archive));
    ATOLL_ASSIGN(source.digest, digest_of(source.bytes));
    ATOLL_ASSIGN(ImportReport report, import_one(source, 1, 1));
    return assemble_template(options_.name, report);
  }

  Result<Template> import_plan(const ImagePlan& plan, int origin) {
    std::vector<ImportReport> layers;
    for (const PlannedLayer& planned : plan.layers) {
      ATOLL_ASSIGN(UniqueFd file, open_layer(plan, planned, origin));
      LayerSource source{.bytes = {.fd = file.get(), .offset = 0, .size = planned.size},
                         .kind = LayerKind::Diff,
                         .digest = planned.diff_id};
      if (plan.origin == PlanOrigin::Archive) {
        source.bytes = {.fd = origin, .offset = planned.offset, .size = planned.size};
      }
      ATOLL_ASSIGN(ImportReport report, import_one(source, layers.size() + 1, plan.layers.size()));
      layers.push_back(std::move(report));
    }
    return assemble_template(options_.name, plan, layers);
  }

  // Nothing for a layer that is there or that lies in an archive.
  Result<UniqueFd> open_layer(const ImagePlan& plan, const PlannedLayer& layer, int origin) const {
    bool present = store_.has(layer_id(LayerKind::Diff, layer.diff_id));
    if (present || plan.origin == PlanOrigin::Archive) return UniqueFd();
    if (plan.origin == PlanOrigin::Layout) {
      return open_layout_file(origin, "blobs/sha256/" + layer.blob);
    }
    return os::open_beneath(staging_.dir(), layer.blob.c_str(), O_RDONLY | O_NONBLOCK);
  }

  Result<ImportReport> import_one(const LayerSource& source, size_t number, size_t of) {
    ImportLimits limits = options_.limits;
    // The limits are for all layers together.
    limits.max_bytes -= std::min(bytes, limits.max_bytes);
    limits.max_entries -= std::min(entries, limits.max_entries);
    auto progress = [&](uint64_t done) {
      if (options_.progress) options_.progress({number, of, done, source.bytes.size});
    };
    ATOLL_ASSIGN(ImportReport report, import_layer(store_, source, limits, progress));
    entries += report.entries;
    bytes += report.bytes;
    reused_layers += report.reused ? 1 : 0;
    return report;
  }

  const TemplateImportOptions& options_;
  LayerStore store_;
  Staging staging_;
};

}  // namespace

Template assemble_template(const std::string& name, const ImagePlan& plan,
                           const std::vector<ImportReport>& layers) {
  Template made{
      .name = name, .layers = {}, .created_at = now_rfc3339(), .digest = "sha256:" + plan.digest};
  for (const ImportReport& layer : layers) {
    if (layer.opaque) {
      made.layers.clear();
      made.bytes = 0;
    }
    made.layers.push_back(layer.layer_id);
    made.bytes += layer.layer_bytes;
  }
  // The kernel refuses one layer twice, and the upper one decides.
  for (size_t i = made.layers.size(); i-- > 0;) {
    auto above = std::find(made.layers.begin() + static_cast<ptrdiff_t>(i) + 1, made.layers.end(),
                           made.layers[i]);
    if (above != made.layers.end())
      made.layers.erase(made.layers.begin() + static_cast<ptrdiff_t>(i));
  }
  made.layers.emplace_back(kPlacesLayer);
  made.defaults = defaults_of(plan);
  return made;
}

Template assemble_template(const std::string& name, const ImportReport& rootfs) {
  Template made{.name = name,
                .layers = {rootfs.layer_id},
                .created_at = now_rfc3339(),
                .digest = rootfs.digest};
  made.bytes = rootfs.layer_bytes;
  return made;
}

Result<TemplateImport> publish_template(const std::string& templates_dir, Template made) {
  TemplateImport result;
  Result<Template> old = load_template(templates_dir, made.name);
  if (old && old->layers == made.layers && old->defaults == made.defaults) {
    result.manifest = std::move(*old);
    result.reused = true;
    return result;
  }
  ATOLL_ASSIGN(made.version, save_template(templates_dir, made));
  result.manifest = std::move(made);
  return result;
}

Result<TemplateImport> import_template(const TemplateImportOptions& options) {
  ATOLL_ASSIGN(TemplateReference reference, parse_template_reference(options.name));
  if (reference.name != options.name) {
    return fail(Error(ErrorCode::InvalidArgument, "give a name without a version or a tag")
                    .with_field("name"));
  }
  ATOLL_TRY(check_root());
  std::string templates_dir = options.data_dir + "/templates";
  ATOLL_ASSIGN(UniqueFd hold, hold_layers(templates_dir));
  ATOLL_ASSIGN(LayerStore store, LayerStore::open(options.data_dir + "/layers"));
  ATOLL_ASSIGN(Staging staging, Staging::create(options.data_dir, options.uid, options.gid));
  Importer importer(options, std::move(store), std::move(staging));
  Result<Template> made = importer.run();
  if (!made) return fail(std::move(made).error().context("importing " + options.source));
  made->source = options.source;
  ATOLL_ASSIGN(TemplateImport result, publish_template(templates_dir, std::move(*made)));
  result.entries = importer.entries;
  result.bytes = importer.bytes;
  result.reused_layers = importer.reused_layers;
  return result;
}

Result<TemplateImport> import_staged(const StagedImportOptions& staged) {
  TemplateImportOptions options;
  options.data_dir = staged.data_dir;
  options.uid = staged.uid;
  options.gid = staged.gid;
  options.progress = staged.progress;
  if (staged.plan) {
    ATOLL_TRY(check_plan(*staged.plan));
    if (staged.plan->origin != PlanOrigin::Staged) {
      return fail(ErrorCode::InvalidArgument, "the plan is not of fetched layers");
    }
  }
  ATOLL_ASSIGN(LayerStore store, LayerStore::open(staged.data_dir + "/layers"));
  ATOLL_ASSIGN(Staging staging, Staging::open(staged.data_dir, staged.staging));
  Importer importer(options, std::move(store), std::move(staging));
  TemplateImport result;
  ATOLL_ASSIGN(result.manifest, importer.run_staged(staged.plan));
  result.entries = importer.entries;
  result.bytes = importer.bytes;
  result.reused_layers = importer.reused_layers;
  return result;
}

Result<TemplateImport> import_template(const std::string& data_dir, const std::string& name,
                                       const std::string& archive_path) {
  TemplateImportOptions options;
  options.data_dir = data_dir;
  options.name = name;
  options.source = archive_path;
  return import_template(options);
}

}  // namespace atl::image
