// What deleted sandboxes have used, added up for each API key; what living ones use is in their
// records.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sandbox/record.h"
#include "store/store.h"

namespace atl::sandbox {

struct UsageTotal {
  Owner owner;
  Metered metered;
  uint64_t sandboxes = 0;  // how many it took
};

// The record's runs plus the present one, as far as it has got at `now`.
Metered metered_until(const Record& record, uint64_t running_cpu_us, const BootTime& now);

class UsageLedger {
 public:
  explicit UsageLedger(store::Store& store) : store_(store) {}
  Result<void> load();
  // Adds a sandbox that goes; the row to write with its removal.
  store::Document add(const Record& record);
  std::vector<UsageTotal> totals() const;

 private:
  store::Store& store_;
  std::map<std::pair<std::string, std::string>, UsageTotal> totals_;  // tenant, key id
};

}  // namespace atl::sandbox
