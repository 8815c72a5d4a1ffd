// Builds one blank slot in a process of its own, so that the launcher never waits for the kernel's
// grace periods.
#pragma once

#include "launcher/chore.h"
#include "launcher/shell.h"

namespace atl::launcher {

class Builder {
 public:
  static Result<Builder> start(ShellPlan plan, os::CgroupTree& cgroups);

  int fd() const { return chore_.fd(); }
  const std::string& slot() const { return plan_.slot; }
  uint32_t id_base() const { return plan_.id_base; }
  // To be called once fd() is readable; reaps the process.
  Result<Shell> finish();

 private:
  Builder(ShellPlan plan, Chore chore) : plan_(std::move(plan)), chore_(std::move(chore)) {}
  ShellPlan plan_;
  Chore chore_;
};

}  // namespace atl::launcher
