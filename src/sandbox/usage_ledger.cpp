#include "sandbox/usage_ledger.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace atl::sandbox {

namespace json = boost::json;

static constexpr std::string_view kKind = "usage";
static constexpr std::string_view kLocal = "local";  // sandboxes that no key made

Metered metered_until(const Record& record, uint64_t running_cpu_us, const BootTime& now) {
  Metered sum = record.metered;
  bool runs = record.ended_at_ms == 0 && record.started_at_ms != 0;
  if (!runs) return sum;
  auto running = static_cast<uint64_t>(std::max<int64_t>(0, now.ms - record.since.ms));
  sum.cpu_us += running_cpu_us;
  sum.running_ms += running;
  sum.memory_mb_ms += running * (record.spec.limits.memory_bytes >> 20);
  return sum;
}

Result<void> UsageLedger::load() {
  ATOLL_ASSIGN(auto documents, store_.load_documents(std::string(kKind)));
  for (const store::Document& document : documents) {
    boost::system::error_code bad;
    json::value parsed = json::parse(document.body, bad);
    if (bad || !parsed.is_object()) {
      return fail(ErrorCode::Internal, "damaged usage record of key " + document.id);
    }
    const json::object& object = parsed.get_object();
    auto number = [&](const char* name) {
      const json::value* value = object.if_contains(name);
      return value != nullptr && value->is_number() ? value->to_number<uint64_t>() : 0;
    };
    std::string key = document.id == kLocal ? "" : document.id;
    totals_[{document.tenant, key}] = {.owner = {.tenant = document.tenant, .key_id = key},
                                       .metered = {.cpu_us = number("cpuUs"),
                                                   .running_ms = number("runningMs"),
                                                   .memory_mb_ms = number("memoryMbMs")},
                                       .sandboxes = number("sandboxes")};
  }
  return {};
}

store::Document UsageLedger::add(const Record& record) {
  const Owner& owner = record.owner;
  UsageTotal& total = totals_[{owner.tenant, owner.key_id}];
  total.owner = owner;
  total.metered.cpu_us += record.metered.cpu_us;
  total.metered.running_ms += record.metered.running_ms;
  total.metered.memory_mb_ms += record.metered.memory_mb_ms;
  total.sandboxes++;
  json::object body{{"cpuUs", total.metered.cpu_us},
                    {"runningMs", total.metered.running_ms},
                    {"memoryMbMs", total.metered.memory_mb_ms},
                    {"sandboxes", total.sandboxes}};
  return {.kind = std::string(kKind),
          .tenant = owner.tenant,
          .id = owner.key_id.empty() ? std::string(kLocal) : owner.key_id,
          .body = json::serialize(body)};
}

std::vector<UsageTotal> UsageLedger::totals() const {
  std::vector<UsageTotal> all;
  for (const auto& [key, total] : totals_) all.push_back(total);
  return all;
}

}  // namespace atl::sandbox
