#include "cli/archive_file.h"

#include <fmt/format.h>

#include "cli/json_out.h"
#include "cli/pending_file.h"
#include "cli/report.h"
#include "cli/units.h"
#include "os/file.h"

namespace atl::cli {

Result<uint64_t> save_archive(const std::string& path,
                              const std::function<Result<uint64_t>(const ByteSink&)>& download) {
  ATOLL_ASSIGN(PendingFile file, PendingFile::create(path));
  ATOLL_ASSIGN(uint64_t bytes,
               download([&](std::string_view block) { return os::write_all(file.fd(), block); }));
  ATOLL_TRY(file.commit());
  return bytes;
}

int print_saved(const Globals& globals, const std::string& path, uint64_t bytes) {
  if (globals.json) {
    print_json(JsonObject().text("file", path).number("bytes", static_cast<int64_t>(bytes)).take());
  } else if (!globals.quiet) {
    print_out(fmt::format("{}: {}\n", path, format_size(bytes)));
  }
  return 0;
}

}  // namespace atl::cli
