// What is asked of `criu swrk`, and what it answers: one protobuf message a datagram.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace atl::criu {

enum class Verb : uint8_t { Dump = 1, Restore = 2, Check = 3, Notify = 6, Version = 10 };

struct Request {
  Verb verb = Verb::Dump;
  int images_dir = -1;  // descriptors as criu will have them
  std::string log_file;
  std::string config_file;            // of settings that have no place here
  std::vector<std::string> external;  // what is not part of the image
  // Dump:
  pid_t pid = 0;
  bool leave_running = false;
  uint32_t timeout_s = 60;
  // Restore:
  std::string root;
  std::vector<std::pair<std::string, int>> inherit;  // what takes whose place
};
std::string encode_request(const Request& request);
std::string encode_notified(bool success);

struct Response {
  Verb verb = Verb::Dump;
  bool success = false;
  std::string script;  // of Notify: the step that criu has come to
  pid_t pid = 0;       // of the restored PID 1
  int error = 0;
  std::string message;
  uint32_t major = 0, minor = 0, sublevel = 0;  // of Version
};
Result<Response> decode_response(std::string_view bytes);

}  // namespace atl::criu
