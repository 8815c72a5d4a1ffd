// multipart/form-data, whole in memory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "atoll/result.h"

namespace atl::api {

struct Part {
  std::string name;
  std::string file_name;
  std::string_view data;
};

// `content_type` may lack the boundary, as one SDK sends it: then the first line of the body is it.
// The parts point into `body`.
Result<std::vector<Part>> parse_multipart(std::string_view content_type, std::string_view body);

}  // namespace atl::api
