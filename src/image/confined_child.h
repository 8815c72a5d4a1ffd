#pragma once

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace atl::image {

// A child process that can reach one directory tree, one socket and nothing else, made for parsing
// what strangers wrote. It is root of its own user namespace, mapped to the id block of the disk;
// the tree is its root directory, mounted without execution, devices or set-user-id; it has its own
// pid, network and ipc namespaces, no other descriptor, and only the capabilities that file owners
// and modes need. Killed and reaped on destruction.
//
// Starting one clones the calling process, which must be root and have no other threads.
class ConfinedChild {
 public:
  struct Code {
    // Runs in the child while it still sees the host's files.
    void (*prepare)();
    // Runs confined, with the child's end of the socket and `argument`.
    void (*run)(int socket, const void* argument);
    const void* argument;
  };

  static Result<ConfinedChild> start(int root_dir, const Code& code);
  ConfinedChild(ConfinedChild&& other) noexcept;
  ConfinedChild& operator=(ConfinedChild&&) = delete;
  ~ConfinedChild();

  int socket() const { return socket_.get(); }
  // Blocks until the child has ended and returns its wait(2) status.
  Result<int> wait();
  void kill();

 private:
  ConfinedChild(pid_t pid, UniqueFd socket) : pid_(pid), socket_(std::move(socket)) {}

  pid_t pid_;
  UniqueFd socket_;
};

}  // namespace atl::image
