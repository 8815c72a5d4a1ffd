// The server's JSON as the client's types. What is missing or of another type reads as empty: a
// client must outlive the fields of one server version.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "atoll/client_types.h"
#include "base/result.h"

namespace atl::client {

// Fails with Internal: a server that sends anything else is not one of ours.
Result<boost::json::value> parse_answer(std::string_view text);
// What is in the "data" that many answers are wrapped in, else the answer itself.
const boost::json::value& unwrap(const boost::json::value& answer);
const boost::json::value& member(const boost::json::value& object, std::string_view name);
std::string text_of(const boost::json::value& object, std::string_view name);
uint64_t number_of(const boost::json::value& object, std::string_view name);
double real_of(const boost::json::value& object, std::string_view name);
bool flag_of(const boost::json::value& object, std::string_view name);

Sandbox to_sandbox(const boost::json::value& value);
ProcessInfo to_process(const boost::json::value& value);
FileEntry to_entry(const boost::json::value& value);
Usage to_usage(const boost::json::value& value);
TemplateInfo to_template(const boost::json::value& value);
SnapshotInfo to_snapshot(const boost::json::value& value);
SystemInfo to_system(const boost::json::value& value);
ExecResult to_exec_result(const boost::json::value& value);
SearchMatch to_match(const boost::json::value& value);
Stream to_stream(std::string_view name);

// Each item of an array; none where it is no array.
template <class T>
std::vector<T> list_of(const boost::json::value& array, T (*convert)(const boost::json::value&)) {
  std::vector<T> list;
  if (const boost::json::array* items = array.if_array()) {
    for (const boost::json::value& item : *items) list.push_back(convert(item));
  }
  return list;
}

// "2026-11-15T05:04:41.123Z" as Unix milliseconds; 0 for anything else.
int64_t parse_time_ms(std::string_view text);

}  // namespace atl::client
