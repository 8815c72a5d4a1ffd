// Which sandboxes a list asks for, and its pages.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/context.h"

namespace atl::api::e2b {

struct ListQuery {
  std::map<std::string, std::string> metadata;
  std::vector<std::string> states;  // empty: all
  std::string template_name;
  int64_t started_after_ms = 0;
  bool newest_first = false;
  size_t limit = 100;
  std::string after;  // the id that the last page ended with
};

Result<ListQuery> read_list_query(const http::Request& request);
std::vector<sandbox::SandboxPtr> matching(Context& context, const ListQuery& query);

struct Page {
  std::vector<sandbox::SandboxPtr> items;
  std::string next;  // the token for the next; empty: there is none
};
Page page_of(const std::vector<sandbox::SandboxPtr>& found, const ListQuery& query);

// "2026-11-15T20:00:00.5Z" and with an offset, as Unix milliseconds.
Result<int64_t> parse_time(std::string_view text, std::string_view field);

}  // namespace atl::api::e2b
