// Templates that are made here: built in a sandbox of another one, or from a state.
#include "backends/native/native_backend.h"
#include "base/failpoint.h"
#include "base/random_id.h"

namespace atl::native {
namespace {

void overlay_settings(TemplateSettings& under, const TemplateSettings& over) {
  for (const auto& [name, value] : over.env) under.env[name] = value;
  if (!over.workdir.empty()) under.workdir = over.workdir;
  if (!over.user.empty()) under.user = over.user;
  if (!over.network.empty()) under.network = over.network;
  if (over.limits.cpu_millis != 0) under.limits.cpu_millis = over.limits.cpu_millis;
  if (over.limits.memory_bytes != 0) under.limits.memory_bytes = over.limits.memory_bytes;
  if (over.limits.disk_bytes != 0) under.limits.disk_bytes = over.limits.disk_bytes;
  if (over.limits.pids != 0) under.limits.pids = over.limits.pids;
}

Task<Result<void>> write_seeds(SandboxSession& session, const PrewarmInput& input) {
  for (const SeedTree& tree : input.seed_trees) {
    ATOLL_CO_ASSIGN(auto writer, co_await session.write_tree(tree.path));
    ATOLL_CO_TRY(co_await writer->write(tree.archive));
    ATOLL_CO_TRY(co_await writer->finish());
  }
  for (const SeedFile& file : input.seed_files) {
    ATOLL_CO_ASSIGN(auto writer, co_await session.write_file(file.path, WriteOptions{}));
    ATOLL_CO_TRY(co_await writer->write(file.content));
    ATOLL_CO_TRY(co_await writer->finish());
  }
  co_return Result<void>();
}

}  // namespace

Task<Result<void>> NativeBackend::collect_templates(std::vector<BackendState> in_use) {
  std::set<std::string> layers;
  for (const BackendState& state : in_use) {
    for (std::string& layer : layers_in(state)) layers.insert(std::move(layer));
  }
  return importer_.collect(std::move(layers));
}

Task<Result<PrewarmResult>> NativeBackend::prewarm(PrewarmInput input) {
  if (!is_valid_id(input.template_key)) {
    co_return fail(
        Error(ErrorCode::InvalidArgument, "a template key is 1 to 64 of a-z, 0-9 and '-'")
            .with_field("templateKey"));
  }
  auto turn = co_await under_way_.take("template/" + input.template_key);
  auto known = templates_.find(input.template_key);
  if (known && (input.digest.empty() || known->digest == input.digest)) {
    if (input.log) input.log("reused: " + known->key());
    co_return PrewarmResult{.key = known->key(), .reused = true};
  }
  co_return co_await capture_template(std::move(input));
}

// What fails before its files are a layer leaves nothing behind.
Task<Result<PrewarmResult>> NativeBackend::capture_template(PrewarmInput input) {
  auto say = [&](const std::string& text) {
    if (input.log) input.log(text);
  };
  ATOLL_CO_ASSIGN(image::Template made, templates_.find(input.base));
  std::string base = made.key();
  overlay_settings(made.defaults, input.settings);
  CreateInput create_input;
  create_input.template_key = base;
  create_input.session_key = random_id("prewarm-");
  create_input.env = made.defaults.env;
  say("creating a sandbox from " + base);
  ATOLL_CO_ASSIGN(auto handle, co_await create(create_input));
  auto work = [&]() -> Task<Result<void>> {
    ATOLL_CO_TRY(co_await handle->ready());
    failpoint("build.ready");
    ATOLL_CO_TRY(co_await write_seeds(handle->session(), input));
    if (input.bootstrap) ATOLL_CO_TRY(co_await input.bootstrap(handle->session()));
    co_return Result<void>();
  };
  auto worked = co_await work();
  if (!worked) {
    (void)co_await handle->destroy();
    co_return fail(std::move(worked).error().context("preparing " + input.template_key));
  }
  say("capturing its files");
  ATOLL_CO_TRY(co_await handle->dispose());
  failpoint("build.ended");
  made.name = input.template_key;
  made.digest = input.digest;
  made.source = base;
  co_return co_await add_layer(std::move(made), {.sandbox = create_input.session_key, .state = ""});
}

Task<Result<PrewarmResult>> NativeBackend::publish_state(PublishInput input) {
  auto turn = co_await under_way_.take("template/" + input.template_key);
  image::Template made;
  made.name = input.template_key;
  made.source = input.source;
  static_cast<TemplateSettings&>(made.defaults) = input.settings;
  auto layers = layers_in(input.metadata);
  made.layers.assign(layers.rbegin(), layers.rend());
  co_return co_await add_layer(std::move(made), {.sandbox = "", .state = input.state});
}

// The layer first, under a lock that keeps it from being collected; then the name for it.
Task<Result<PrewarmResult>> NativeBackend::add_layer(image::Template made,
                                                     wire::PublishRequest publish) {
  std::string directory = options_.data_dir + "/templates";
  ATOLL_CO_ASSIGN(UniqueFd held, co_await importer_.hold());
  publish.layer = random_id(wire::kLayerPrefix, 24);
  made.layers.push_back(publish.layer);
  made.created_at = image::now_rfc3339();
  made.bytes = 0;
  ATOLL_CO_TRY(co_await launcher_->tell(std::move(publish), kNoReplyLimit));
  failpoint("build.published");
  ATOLL_CO_ASSIGN(made.version, image::save_template(directory, made));
  failpoint("build.saved");
  co_return PrewarmResult{.key = made.key(), .reused = false};
}

}  // namespace atl::native
