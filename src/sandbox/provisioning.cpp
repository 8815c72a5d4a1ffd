// What is done inside a new sandbox before it counts as running: the clone of a repository.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "base/log.h"
#include "sandbox/manager.h"

namespace atl::sandbox {

namespace asio = boost::asio;

static constexpr std::chrono::minutes kCloneTime{10};

// The credential travels in the environment of this one command and is stored nowhere.
static RunOptions clone_command(const Spec& spec) {
  RunOptions run;
  run.argv = {"git", "clone"};
  if (spec.git.depth != 0) {
    run.argv.insert(run.argv.end(), {"--depth", std::to_string(spec.git.depth)});
  }
  if (!spec.git.ref.empty()) run.argv.insert(run.argv.end(), {"--branch", spec.git.ref});
  if (!spec.git.sparse.empty()) run.argv.insert(run.argv.end(), {"--sparse", "--filter=blob:none"});
  run.argv.insert(run.argv.end(), {"--", spec.git.url, "."});
  run.env = {{"GIT_TERMINAL_PROMPT", "0"}};
  if (!spec.git_token.empty()) {
    run.env["GIT_CONFIG_COUNT"] = "1";
    run.env["GIT_CONFIG_KEY_0"] = "http.extraHeader";
    run.env["GIT_CONFIG_VALUE_0"] = "Authorization: Bearer " + spec.git_token;
  }
  run.timeout = kCloneTime;
  return run;
}

static std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  size_t at = text.find_last_of('\n');
  return at == text.npos ? text : text.substr(at + 1);
}

static Task<Result<void>> clone(SandboxSession& session, const Spec& spec) {
  ATOLL_CO_ASSIGN(RunResult cloned, co_await session.run(clone_command(spec)));
  if (cloned.process.exit_code != 0) {
    co_return fail(ErrorCode::InvalidState, "git clone failed: " + last_line(cloned.stderr_data));
  }
  if (spec.git.sparse.empty()) co_return Result<void>();
  RunOptions sparse;
  sparse.argv = {"git", "sparse-checkout", "set", "--"};
  sparse.argv.insert(sparse.argv.end(), spec.git.sparse.begin(), spec.git.sparse.end());
  sparse.timeout = kCloneTime;
  ATOLL_CO_ASSIGN(RunResult narrowed, co_await session.run(std::move(sparse)));
  if (narrowed.process.exit_code == 0) co_return Result<void>();
  co_return fail(ErrorCode::InvalidState,
                 "git sparse-checkout failed: " + last_line(narrowed.stderr_data));
}

void Manager::start_provisioning(const SandboxPtr& sandbox) {
  auto self = shared_from_this();
  asio::co_spawn(
      executor_, [self, sandbox]() -> Task<void> { return self->provision(sandbox); },
      asio::detached);
}

Task<void> Manager::provision(SandboxPtr sandbox) {
  Record& record = sandbox->record;
  store::Write progress;
  progress.events.push_back(
      events_.make(record.owner.tenant, record.id, "provision_progress",
                   R"({"step":"git","status":"running","message":"cloning the repository"})"));
  (void)co_await write(std::move(progress));
  auto handle = sandbox->handle;
  Result<void> prepared = fail(ErrorCode::InvalidState, "it ended while it was prepared");
  if (handle != nullptr) prepared = co_await clone(handle->session(), record.spec);
  record.spec.git_token.clear();
  auto lock = co_await sandbox->lifecycle.lock();
  if (sandbox->deleted || record.status != Status::Provisioning) co_return;
  if (prepared) {
    record.status = Status::Running;
    sandbox->touch();
    (void)co_await save(*sandbox, "provision_complete");
    co_return;
  }
  co_await settle_run(*sandbox, {EndCause::Provisioning, prepared.error().message()});
  record.status = Status::Failed;
  (void)co_await save(*sandbox, "sandbox.failed");
  if (auto ended = std::exchange(sandbox->handle, nullptr)) (void)co_await ended->dispose();
}

}  // namespace atl::sandbox
