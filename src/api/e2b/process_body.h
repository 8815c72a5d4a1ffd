// The messages of envd's process service.
#pragma once

#include <boost/json/object.hpp>

#include "atoll/sandbox_session.h"
#include "http/json.h"

namespace atl::api::e2b {

// Something for a process that runs.
struct ProcessOrder {
  std::string input;
  bool end = false;
  uint16_t cols = 0;  // 0: as it is
  uint16_t rows = 0;
};

// The command as asked for; its directory is not resolved yet.
Result<SpawnOptions> read_start(const http::JsonDocument& document);
// {"process":{"pid":..}}
Result<int32_t> read_selector(http::JsonObjectReader& reader);
Result<int> read_signal(http::JsonObjectReader& reader);
Result<ProcessOrder> read_input(http::JsonObjectReader& reader);
Result<ProcessOrder> read_end(http::JsonObjectReader& reader);
Result<ProcessOrder> read_resize(http::JsonObjectReader& reader);

boost::json::object process_json(const ProcessInfo& info);
// The last event of a stream.
std::string end_json(const ProcessInfo& info);

}  // namespace atl::api::e2b
