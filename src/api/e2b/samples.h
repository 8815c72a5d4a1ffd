// What sandboxes used, over the last minutes. Nobody's use is looked at unless somebody asks: the
// first question about a sandbox begins its history, which ends some minutes after the last.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/context.h"

namespace atl::api::e2b {

struct Sample {
  int64_t at_ms = 0;  // Unix time
  double cpu_percent = 0;
  HostUsage used;
};

class Samples : public std::enable_shared_from_this<Samples> {
 public:
  // A look at it now, and what was seen before; the newest last.
  Task<Result<std::vector<Sample>>> of(Context& context, sandbox::SandboxPtr sandbox);

 private:
  struct Series {
    std::deque<Sample> samples;
    int64_t boot_ms = 0;  // when the last was taken
    int64_t asked_at_ms = 0;
  };
  Task<Result<void>> take(const sandbox::SandboxPtr& sandbox);
  // Takes samples of all that were asked about lately, until there are none.
  Task<void> follow(sandbox::Manager& manager);

  std::map<std::string, Series> series_;  // by sandbox
  bool following_ = false;
};

}  // namespace atl::api::e2b
