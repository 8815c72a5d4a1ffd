// The server's part of the command line.
#pragma once

#include <string>

namespace atl::cli {

struct ServeArguments {
  std::string data_dir = "/var/lib/atoll";
  std::string run_dir = "/run/atoll";
  std::string listen = "127.0.0.1:7777";  // or "none"
  std::string cgroup = "atoll";
  unsigned reserve = 4;
  unsigned pool = 4;
  std::string on_exit = "keep";  // or "stop"
  int ready_fd = -1;
  std::string log_level = "info";
  std::string user = "atoll";
};

// Returns the exit code.
int run_serve(ServeArguments arguments);

}  // namespace atl::cli
