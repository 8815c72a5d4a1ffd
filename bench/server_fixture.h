// A server of its own for one run: private folders, a private control group, no pool shared with
// anybody. Ended when destroyed.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"
#include "options.h"

namespace atl::bench {

class Workspace {
 public:
  // Makes what the options leave open, and imports the template where the data folder is new.
  static Result<Workspace> create(const Options& options);
  Workspace(Workspace&& other) noexcept;
  Workspace& operator=(Workspace&&) = delete;
  ~Workspace();

  const std::string& dir() const { return dir_; }
  const std::string& data_dir() const { return data_dir_; }
  std::string run_dir() const { return dir_ + "/run"; }
  std::string log_path() const { return dir_ + "/server.log"; }
  const std::string& cgroup() const { return cgroup_; }
  // The template's single layer.
  Result<std::string> root_layer() const;
  // Leaves the folder, so that somebody can read the log.
  void keep() { private_ = false; }

 private:
  Workspace() = default;
  std::string dir_;
  std::string data_dir_;
  std::string cgroup_;
  bool private_ = false;
};

class ServerFixture {
 public:
  static Result<ServerFixture> start(const Options& options, const Workspace& workspace);
  ServerFixture(ServerFixture&& other) noexcept;
  ServerFixture& operator=(ServerFixture&&) = delete;
  ~ServerFixture();

  pid_t pid() const { return pid_; }
  const std::string& endpoint() const { return endpoint_; }
  // Asks it to end and waits; kills it, and fails, where that takes more than a minute.
  Result<void> stop();

  static constexpr unsigned kPool = 4;
  static constexpr unsigned kReserve = 4;

 private:
  ServerFixture(pid_t pid, std::string endpoint) : pid_(pid), endpoint_(std::move(endpoint)) {}
  pid_t pid_;
  std::string endpoint_;
};

}  // namespace atl::bench
