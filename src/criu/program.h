// Runs the criu program for one request. The caller is a process of its own that has put itself
// where criu must be: in the network namespace, control groups and mount namespace of the work.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "criu/rpc.h"

namespace atl::criu {

// criu is unpacked with its libraries and their loader.
struct Program {
  std::string dir;  // holds `criu` and `lib`
};

// Called at each step that criu tells of. Where it fails, criu is told so.
using OnStep = std::function<Result<void>(const Response& step)>;

// The answer, with success checked; `keep` are descriptors that criu inherits under their numbers.
Result<Response> run(const Program& program, const Request& request, const std::vector<int>& keep,
                     const OnStep& on_step);

}  // namespace atl::criu
