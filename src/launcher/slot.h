#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "wire/launcher_messages.h"

namespace atl::launcher {

// One set of namespaces and control groups with its agent. Blank until a sandbox moves in; never
// used twice.
struct Slot {
  enum class State { Blank, Live, Ending };
  std::string id;
  uint32_t id_base = 0;
  pid_t pid = 0;
  UniqueFd pidfd;
  UniqueFd mount_mapping;  // both closed once the root filesystem is attached
  UniqueFd files;
  State state = State::Blank;
  UniqueFd gate;         // the link that steers its connections to egress; none: it has no way out
  bool frozen = false;   // somebody asked for it
  bool leaving = false;  // its processes are being kept and ended
  // Whom to tell once it has ended.
  std::optional<uint32_t> stop_request;
};

}  // namespace atl::launcher
