// A Docker daemon of its own for one run, with the template as its one image. It lives in mount and
// network namespaces of its own and keeps everything in the workspace, so the host's mounts, rules,
// services and folders stay as they are. When destroyed it is ended, and all that it made removed.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "server_fixture.h"

namespace atl::bench {

class DockerDaemon {
 public:
  // Programs are those below ATOLL_DOCKER_DIR, or the host's own without it.
  static Result<DockerDaemon> start(const Workspace& workspace);
  DockerDaemon(DockerDaemon&& other) noexcept;
  DockerDaemon& operator=(DockerDaemon&&) = delete;
  ~DockerDaemon();

  pid_t pid() const { return pid_; }
  // Version and storage driver.
  const std::string& description() const { return description_; }
  // The command line of one container that runs /bin/true, with no network.
  std::vector<std::string> run_command() const;
  // The client's command line for anything else.
  std::vector<std::string> command(std::vector<std::string> arguments) const {
    return client(std::move(arguments));
  }
  static constexpr const char* kImage = "atoll-bench";
  Result<void> stop();

 private:
  explicit DockerDaemon(const Workspace& workspace);
  Result<void> launch();
  Result<void> wait_ready() const;
  Result<void> import_image() const;
  std::vector<std::string> client(std::vector<std::string> arguments) const;
  std::string socket() const { return dir_ + "/docker.sock"; }
  std::string log_path() const { return dir_ + "/dockerd.log"; }

  std::string dir_;
  std::string cgroup_;
  std::string programs_;  // a root directory; empty: by PATH
  std::string description_;
  pid_t pid_ = 0;
};

}  // namespace atl::bench
