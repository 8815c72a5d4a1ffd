// `atoll serve`: three processes under a supervisor that only starts, watches and ends them.
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
  std::string on_exit = "keep";  // or "stop": what becomes of sandboxes at a graceful end
  int ready_fd = -1;             // gets "ready\n" once requests are served
  std::string log_level = "info";
  std::string user = "atoll";  // the account the server runs as
};

// The process's exit code.
int run_serve(ServeArguments arguments);

}  // namespace atl::cli
