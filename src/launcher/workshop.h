// Where criu works: the launcher's own few mounts, and beside them criu, the host's /usr
// (read-only, for the tar that packs what lies in a tmpfs) and a /run of its own, in which criu
// keeps what it has found out about the kernel.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "criu/program.h"

namespace atl::launcher {

class Workshop {
 public:
  // While the host's directories can still be seen; `criu_dir` empty or wrong: one that only says
  // so.
  static Workshop find(const std::string& criu_dir);
  // Once the launcher's own mounts are made.
  void build();

  // Why there is none; empty where there is.
  const std::string& lacking() const { return lacking_; }
  // Moves the calling process, which is a child of the launcher's, into a copy of it.
  Result<void> enter() const;
  criu::Program program() const;

 private:
  Result<void> assemble() const;
  UniqueFd criu_;
  UniqueFd usr_;
  UniqueFd mounts_;
  std::string lacking_;
};

}  // namespace atl::launcher
