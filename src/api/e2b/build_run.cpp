#include "api/e2b/build_run.h"

#include "api/e2b/create_body.h"
#include "api/exec_body.h"
#include "api/gzip.h"
#include "api/sandbox_body.h"
#include "image/template.h"

namespace atl::api::e2b {
namespace {

constexpr std::chrono::hours kStepLimit(1);
constexpr uint32_t kBuildSeconds = 6 * 3600;
constexpr std::string_view kMessage = "a template's build";
constexpr const char* kUnpacked = "/tmp/.atoll-build-files";

// Docker's rules: a directory's contents go into the target, several files into the directory.
constexpr const char* kCopy = R"sh(set -e
cd "$UNPACKED"
shopt -s nullglob
IFS=
found=($SOURCE)
if [ ${#found[@]} -eq 0 ]; then echo "nothing matches $SOURCE" >&2; exit 1; fi
if [ ${#found[@]} -eq 1 ] && [ -d "${found[0]}" ]; then
  mkdir -p "$TARGET"
  from=("${found[0]%/}/.")
elif [ ${#found[@]} -gt 1 ] || [ "${TARGET%/}" != "$TARGET" ]; then
  mkdir -p "$TARGET"
  from=("${found[@]}")
else
  mkdir -p "$(dirname "$TARGET")"
  from=("${found[0]}")
fi
chown -R "$OWNER" "${from[@]}"
if [ -n "$MODE" ]; then chmod -R "$MODE" "${from[@]}"; fi
cp -a "${from[@]}" "$TARGET"
)sh";

}  // namespace

Result<void> BuildRun::check(Context& context) {
  origin_ = find_snapshot(context, plan_.from);
  if (origin_ != nullptr) {
    spec_ = copied_spec(origin_->source.spec);
  } else {
    auto parsed = image::parse_template_reference(plan_.from);
    auto found = parsed ? manager_->backend().find_template(plan_.from)
                        : Result<FoundTemplate>(fail(parsed.error()));
    if (!found) {
      return fail(Error(ErrorCode::NotFound, "there is no template '" + plan_.from +
                                                 "'; import the image under this name first")
                      .with_field(plan_.from_field));
    }
    spec_.template_name = plan_.from;
    spec_.limits = limits_for(context.service, Limits(), found->settings.limits);
    spec_.user = !found->settings.user.empty() ? found->settings.user
                                               : (plan_.from == "base" ? "user" : "root");
  }
  if (build_->order.cpu_millis != 0) spec_.limits.cpu_millis = build_->order.cpu_millis;
  if (build_->order.memory_bytes != 0) spec_.limits.memory_bytes = build_->order.memory_bytes;
  for (const auto& [name, value] : plan_.env) spec_.env[name] = value;
  if (!plan_.user.empty()) spec_.user = plan_.user;
  if (!plan_.workdir.empty()) spec_.workdir = plan_.workdir;
  spec_.max_lifetime_s = kBuildSeconds;
  spec_.at_lifetime = sandbox::AtLifetime::Delete;
  // Packages are what most builds fetch.
  spec_.network.mode = NetworkPolicy::Mode::AllowAll;
  return {};
}

void BuildRun::tell_output(const std::string& text, const std::string& level,
                           const std::string& number) {
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    build_->say(level, text.substr(at, end - at), number);
    at = end + 1;
  }
}

Task<Result<void>> BuildRun::run_command(SandboxSession& session, const BuildStep& step,
                                         const std::string& number) {
  RunOptions options;
  options.argv = shell_argv(step.command);
  options.env = step.env;
  options.user = step.user.empty() ? spec_.user : step.user;
  options.cwd = !step.workdir.empty() ? step.workdir : options.user == "user" ? "/home/user" : "/";
  options.timeout = kStepLimit;
  ATOLL_CO_ASSIGN(RunResult done, co_await session.run(std::move(options)));
  tell_output(done.stdout_data, "info", number);
  tell_output(done.stderr_data, "warn", number);
  if (done.process.exit_code == 0) co_return Result<void>();
  co_return fail(ErrorCode::InvalidArgument,
                 "the command ended with exit code " + std::to_string(done.process.exit_code));
}

Task<Result<void>> BuildRun::copy_files(SandboxSession& session, const BuildStep& step) {
  if (files_ == nullptr) co_return fail(ErrorCode::NotFound, "the files were not uploaded");
  ATOLL_CO_ASSIGN(auto store, co_await manager_->session(files_));
  ATOLL_CO_ASSIGN(auto archive, co_await store->read_file(Builds::place_of(step.files_hash), {}));
  RemoveOptions all{.force = true, .recursive = true, .user = "root"};
  ATOLL_CO_TRY(co_await session.remove_path(kUnpacked, all));
  ATOLL_CO_TRY(co_await session.make_directory(kUnpacked, true, spec_.user));
  ATOLL_CO_ASSIGN(auto tree, co_await session.write_tree(kUnpacked));
  GzipReader gzip;
  auto sink = [&tree](std::string_view piece) { return tree->write(piece); };
  for (;;) {
    ATOLL_CO_ASSIGN(std::string_view part, co_await archive->read());
    if (part.empty()) break;
    ATOLL_CO_TRY(co_await gzip.add(part, sink));
  }
  ATOLL_CO_TRY(gzip.finish());
  ATOLL_CO_TRY(co_await tree->finish());
  BuildStep copy;
  copy.command = kCopy;
  copy.user = "root";
  copy.workdir = "/";
  copy.env = {{"UNPACKED", kUnpacked},
              {"SOURCE", step.source},
              {"TARGET", step.target},
              {"OWNER", step.owner},
              {"MODE", step.mode}};
  auto done = co_await run_command(session, copy, "");
  ATOLL_CO_TRY(co_await session.remove_path(kUnpacked, all));
  co_return done;
}

Task<Result<void>> BuildRun::run_steps(SandboxSession& session) {
  for (const BuildStep& step : plan_.steps) {
    std::string number = std::to_string(step.number);
    bool copies = step.kind == BuildStep::Kind::Copy;
    build_->say("info", copies ? "COPY " + step.source + " " + step.target : "RUN " + step.command,
                number);
    auto done =
        copies ? co_await copy_files(session, step) : co_await run_command(session, step, number);
    if (done) continue;
    build_->failed_step = number;
    co_return done;
  }
  co_return Result<void>();
}

// The template's name stands for the new state from now on; the one before is not needed any more.
Task<Result<void>> BuildRun::keep(const sandbox::SandboxPtr& sandbox) {
  const BuildOrder& order = build_->order;
  sandbox::SnapshotInput input;
  input.message = kMessage;
  input.tags = {order.name};
  for (const std::string& tag : order.tags) input.tags.push_back(order.name + ":" + tag);
  ATOLL_CO_ASSIGN(auto made, co_await manager_->take_snapshot(sandbox, input));
  for (const auto& old : manager_->snapshots().list(build_->caller, "")) {
    bool replaced = old->id != made->id && old->message == kMessage && old->tags == input.tags &&
                    old->source.owner.tenant == build_->caller.owner.tenant;
    if (replaced) ATOLL_CO_TRY(co_await manager_->remove_snapshot(old));
  }
  co_return Result<void>();
}

Task<void> BuildRun::carry_out() {
  auto self = shared_from_this();
  auto made = origin_ != nullptr ? co_await manager_->create_from(build_->caller, origin_, spec_)
                                 : co_await manager_->create(build_->caller, spec_);
  Result<void> result;
  if (!made) {
    result = fail(std::move(made).error());
  } else {
    auto session = co_await manager_->session(*made);
    if (session) {
      result = co_await run_steps(**session);
      session->reset();
    } else {
      result = fail(std::move(session).error());
    }
    if (result) result = co_await keep(*made);
    (void)co_await manager_->remove(*made, {sandbox::EndCause::Request, "its build is over"});
  }
  if (!result) {
    build_->reason = result.error().message();
    build_->say("error", build_->reason, build_->failed_step);
  }
  build_->status = result ? Build::Status::Ready : Build::Status::Error;
}

}  // namespace atl::api::e2b
