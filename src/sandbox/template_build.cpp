#include "sandbox/template_build.h"

#include "image/sha256.h"

namespace atl::sandbox {
namespace {

constexpr size_t kMaxErrorTail = 2000;

// Every part with its length, so that no two lists of parts look the same.
class PartsDigest {
 public:
  PartsDigest& add(std::string_view part) {
    std::string size = std::to_string(part.size()) + ":";
    hash_.update(size.data(), size.size());
    hash_.update(part.data(), part.size());
    return *this;
  }
  PartsDigest& add(uint64_t number) { return add(std::to_string(number)); }
  std::string finish() { return "sha256:" + hash_.finish(); }

 private:
  image::Sha256 hash_;
};

void add_settings(PartsDigest& digest, const TemplateSettings& settings) {
  digest.add(settings.env.size());
  for (const auto& [name, value] : settings.env) digest.add(name).add(value);
  digest.add(settings.workdir).add(settings.user).add(settings.network);
  const Limits& limits = settings.limits;
  digest.add(limits.cpu_millis).add(limits.memory_bytes).add(limits.disk_bytes).add(limits.pids);
}

using Log = std::function<void(const std::string&)>;

Task<Result<void>> run_script(SandboxSession& session, std::string script,
                              std::chrono::milliseconds time, Log log) {
  SpawnOptions options;
  options.argv = {"/bin/sh", "-e", "-c", std::move(script)};
  options.label = "bootstrap";
  options.timeout = time;
  ATOLL_CO_ASSIGN(ProcessInfo started, co_await session.spawn(std::move(options)));
  ATOLL_CO_ASSIGN(auto stream, co_await session.attach(started.pid, AttachOptions{}));
  std::string tail;
  for (;;) {
    ATOLL_CO_ASSIGN(OutputEvent event, co_await stream->next());
    if (event.kind == OutputEvent::Kind::Data) {
      std::string text(event.data);
      log(text);
      tail = (tail + text)
                 .substr(tail.size() + text.size() > kMaxErrorTail
                             ? tail.size() + text.size() - kMaxErrorTail
                             : 0);
    }
    if (event.kind != OutputEvent::Kind::Exited) continue;
    if (event.process.timed_out) {
      co_return fail(ErrorCode::Timeout, "the bootstrap script took too long");
    }
    if (event.process.exit_code == 0) co_return Result<void>();
    co_return fail(
        ErrorCode::InvalidState,
        "the bootstrap script exited with " + std::to_string(event.process.exit_code) +
            (tail.empty() ? std::string("; it wrote nothing") : "; at its end it wrote: " + tail));
  }
}

}  // namespace

std::string digest_of(const TemplateBuild& build, const FoundTemplate& base) {
  PartsDigest digest;
  digest.add("atoll template 1").add(base.contents);
  add_settings(digest, base.settings);
  digest.add(build.trees.size());
  for (const SeedTree& tree : build.trees) digest.add(tree.path).add(tree.archive);
  digest.add(build.files.size());
  for (const SeedFile& file : build.files) digest.add(file.path).add(file.content);
  digest.add(build.script);
  add_settings(digest, build.settings);
  return digest.finish();
}

Task<Result<PrewarmResult>> build_template(SandboxBackend& backend, TemplateBuild build, Log log) {
  ATOLL_CO_ASSIGN(FoundTemplate base, backend.find_template(build.base));
  PrewarmInput input;
  input.template_key = build.name;
  input.digest = digest_of(build, base);
  input.base = base.key;
  input.seed_files = std::move(build.files);
  input.seed_trees = std::move(build.trees);
  input.settings = std::move(build.settings);
  input.log = [log](const std::string& text) { log("atoll: " + text + "\n"); };
  if (!build.script.empty()) {
    input.bootstrap = [log, script = std::move(build.script),
                       time = build.time](SandboxSession& session) {
      return run_script(session, script, time, log);
    };
  }
  co_return co_await backend.prewarm(std::move(input));
}

}  // namespace atl::sandbox
