#include "serve/online_backup.h"

#include <fcntl.h>

#include "async/worker_thread.h"
#include "backup/create.h"
#include "backup/scratch.h"
#include "base/scope_exit.h"

namespace atl::serve {
namespace {

Result<UniqueFd> write_archive(const std::string& data_dir, const backup::Scratch& scratch) {
  UniqueFd file(openat(scratch.fd(), "archive", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid()) return fail_errno("create", "the backup");
  ATOLL_TRY(backup::write_backup(data_dir, scratch.path() + "/atoll.db", file.get()));
  if (lseek(file.get(), 0, SEEK_SET) != 0) return fail_errno("seek", "the backup");
  return file;
}

}  // namespace

Task<Result<UniqueFd>> OnlineBackup::make() {
  if (busy_) co_return fail(ErrorCode::Conflict, "a backup is being made; wait for its end");
  busy_ = true;
  ScopeExit done([this] { busy_ = false; });
  // The state directory is the one that this process may write to.
  ATOLL_CO_ASSIGN(auto scratch, backup::Scratch::make(data_dir_ + "/state", ".backup-"));
  ATOLL_CO_TRY(co_await store_.backup_to(scratch.path() + "/atoll.db"));
  async::WorkerThread worker([](const std::function<void()>& jobs) -> Result<void> {
    jobs();
    return {};
  });
  auto work = [&] { return write_archive(data_dir_, scratch); };
  co_return co_await worker.run(work);
}

}  // namespace atl::serve
