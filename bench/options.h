#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.h"

namespace atl::bench {

struct Options {
  std::string atoll;                // the binary
  std::vector<std::string> server;  // instead of `ATOLL serve`
  std::string data_dir;             // with templates; empty: a private one is made
  std::string work_dir;             // for what else is needed; empty: a private one is made
  std::string json;
  std::set<std::string> only;  // latency, throughput, scale; empty: all
  unsigned rounds = 200;
  unsigned idle_sandboxes = 1000;
  unsigned live_sandboxes = 2000;
  unsigned repetitions = 5;
  bool quick = false;

  bool wants(const std::string& part) const { return only.empty() || only.contains(part); }
};

// The text to print where the arguments cannot be used, or ask for help, is the error's message.
Result<Options> parse_options(int argc, char** argv);

// The folder this program lies in.
std::string own_dir();

}  // namespace atl::bench
