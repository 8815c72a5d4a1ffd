// Runs what reads strangers' documents in a process without rights, on behalf of one that has them.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "base/unique_fd.h"
#include "image/image_plan.h"

namespace atl::image {

// Opens a file for the planner, by a name that the opener checks.
using OpenFile = std::function<Result<UniqueFd>(const std::string& name)>;

struct Planner {
  // Of the process; root only where the caller is not root, for tests.
  uid_t uid = 0;
  gid_t gid = 0;
  // Runs there; what it opens is opened here, by `open`.
  std::function<Result<ImagePlan>(const OpenFile& ask)> work;
  OpenFile open;
};

// The caller must have one thread only.
Result<ImagePlan> run_planner(const Planner& planner);

}  // namespace atl::image
