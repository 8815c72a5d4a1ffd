#include "auth/quota.h"

#include <fmt/format.h>

#include <string_view>

namespace atl::auth {
namespace {

struct Dimension {
  std::string_view type;   // as the API names it
  std::string_view field;  // of a create request
  double unit;             // this many make one of the API's
};

struct Amounts {
  uint64_t limit;
  uint64_t used;
  uint64_t wanted;
};

bool fits(const Amounts& amounts) {
  if (amounts.limit == 0 || amounts.wanted == 0) return true;
  return amounts.used <= amounts.limit && amounts.wanted <= amounts.limit - amounts.used;
}

Result<void> check_one(const Dimension& dimension, const Amounts& amounts) {
  if (fits(amounts)) return {};
  auto shown = [&](uint64_t amount) { return static_cast<double>(amount) / dimension.unit; };
  std::string message = fmt::format(
      "quota exceeded: quotaType {}, current {:.10g}, wanted {:.10g}, limit {:.10g}; delete "
      "sandboxes, ask for less or have the quota raised",
      dimension.type, shown(amounts.used), shown(amounts.wanted), shown(amounts.limit));
  return fail(Error(ErrorCode::ResourceExhausted, std::move(message)).with_field(dimension.field));
}

}  // namespace

Result<void> check(const Quota& limit, const Quota& used, const Quota& wanted) {
  ATOLL_TRY(check_one({"sandboxes", "", 1}, {limit.sandboxes, used.sandboxes, wanted.sandboxes}));
  ATOLL_TRY(check_one({"cpuCores", "resources.cpuCores", 1000},
                      {limit.cpu_millis, used.cpu_millis, wanted.cpu_millis}));
  ATOLL_TRY(check_one({"memoryMB", "resources.memoryMB", 1 << 20},
                      {limit.memory_bytes, used.memory_bytes, wanted.memory_bytes}));
  return check_one({"diskGB", "resources.diskGB", 1 << 30},
                   {limit.disk_bytes, used.disk_bytes, wanted.disk_bytes});
}

}  // namespace atl::auth
