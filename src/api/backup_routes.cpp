#include <sys/stat.h>
#include <unistd.h>

#include "api/routes.h"

namespace atl::api {
namespace {

constexpr size_t kChunk = 256u << 10;

Task<Result<void>> send_file(UniqueFd file, http::ResponseWriter& writer) {
  struct stat info {};
  if (fstat(file.get(), &info) != 0) co_return fail_errno("stat", "the backup");
  http::Headers headers{{"content-type", "application/zstd"},
                        {"content-disposition", "attachment; filename=\"atoll-backup.tar.zst\""},
                        {"cache-control", "no-store"}};
  ATOLL_CO_TRY(co_await writer.start(200, std::move(headers), static_cast<uint64_t>(info.st_size)));
  std::string block(kChunk, '\0');
  for (;;) {
    ssize_t size = read(file.get(), block.data(), block.size());
    if (size < 0) co_return fail_errno("read", "the backup");
    if (size == 0) co_return co_await writer.finish();
    ATOLL_CO_TRY(co_await writer.write({block.data(), static_cast<size_t>(size)}));
  }
}

Task<Result<void>> backup(Context& context, http::Request&, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(UniqueFd file, co_await context.service.make_backup());
  co_return co_await send_file(std::move(file), writer);
}

}  // namespace

void add_backup_route(ControlRoutes& routes) {
  routes.add(Access::Admin, "POST", "/v1/system/backup", backup);
}

}  // namespace atl::api
