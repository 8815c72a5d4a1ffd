// Builds one blank slot in a process of its own, so that the launcher never waits for the kernel's
// grace periods.
#pragma once

#include <optional>

#include "launcher/shell.h"

namespace atl::launcher {

class Builder {
 public:
  static Result<Builder> start(ShellPlan plan, os::CgroupTree& cgroups);
  Builder(Builder&&) = default;

  int fd() const { return socket_.get(); }
  const std::string& slot() const { return plan_.slot; }
  uint32_t id_base() const { return plan_.id_base; }
  // To be called once fd() is readable; reaps the process.
  Result<Shell> finish();

 private:
  Builder(ShellPlan plan, pid_t pid, UniqueFd socket)
      : plan_(std::move(plan)), pid_(pid), socket_(std::move(socket)) {}
  ShellPlan plan_;
  pid_t pid_;
  UniqueFd socket_;
};

}  // namespace atl::launcher
