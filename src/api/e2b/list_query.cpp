#include "api/e2b/list_query.h"

#include <time.h>

#include <algorithm>
#include <charconv>

#include "api/e2b/lifetime.h"
#include "base/base64url.h"
#include "http/target.h"

namespace atl::api::e2b {
namespace {

constexpr uint64_t kMaxPage = 1000;

Error bad(std::string_view field, std::string message) {
  return Error(ErrorCode::InvalidArgument, std::move(message)).with_field(field);
}

// The filter is a query of its own, whose parts some clients encode once more.
Result<std::map<std::string, std::string>> read_filter(std::string_view text) {
  std::map<std::string, std::string> filter;
  ATOLL_ASSIGN(http::Query pairs, http::Query::parse(text));
  for (const auto& [key, value] : pairs) {
    ATOLL_ASSIGN(std::string name, http::percent_decode(key));
    ATOLL_ASSIGN(filter[name], http::percent_decode(value));
  }
  return filter;
}

Result<std::vector<std::string>> read_states(const http::Request& request) {
  std::vector<std::string> states;
  for (std::string_view given : request.query.all("state")) {
    for (std::string_view state : http::split_list(given)) {
      if (state != "running" && state != "paused") {
        return fail(bad("state", "a state is running or paused"));
      }
      states.emplace_back(state);
    }
  }
  return states;
}

bool matches(const sandbox::Record& record, const ListQuery& query) {
  std::string_view state = is_paused(record) ? "paused" : "running";
  bool wanted = query.states.empty() ||
                std::find(query.states.begin(), query.states.end(), state) != query.states.end();
  if (!wanted || record.started_at_ms <= query.started_after_ms) return false;
  if (!query.template_name.empty() && record.spec.template_name != query.template_name) {
    return false;
  }
  return std::all_of(query.metadata.begin(), query.metadata.end(), [&](const auto& pair) {
    auto found = record.spec.metadata.find(pair.first);
    return found != record.spec.metadata.end() && found->second == pair.second;
  });
}

}  // namespace

Result<int64_t> parse_time(std::string_view text, std::string_view field) {
  std::string whole(text);
  tm parts{};
  const char* rest = strptime(whole.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) return fail(bad(field, "a time is like 2026-01-31T12:00:00Z"));
  int64_t ms = int64_t{timegm(&parts)} * 1000;
  if (*rest == '.') {
    int64_t unit = 100;
    for (rest++; *rest >= '0' && *rest <= '9'; rest++, unit /= 10) ms += (*rest - '0') * unit;
  }
  if (std::string_view(rest) == "Z") return ms;
  int hours = 0, minutes = 0;
  bool sign = *rest == '+' || *rest == '-' || *rest == ' ';  // '+' in a query reads as a space
  if (!sign || sscanf(rest + 1, "%2d:%2d", &hours, &minutes) != 2) {
    return fail(bad(field, "a time ends with Z or an offset"));
  }
  int64_t offset = (int64_t{hours} * 60 + minutes) * 60'000;
  return *rest == '-' ? ms + offset : ms - offset;
}

Result<ListQuery> read_list_query(const http::Request& request) {
  ListQuery query;
  if (auto filter = request.query.get("metadata")) {
    ATOLL_ASSIGN(query.metadata, read_filter(*filter));
  }
  ATOLL_ASSIGN(query.states, read_states(request));
  query.template_name = request.query.get("template").value_or("");
  if (auto after = request.query.get("startedAfter")) {
    ATOLL_ASSIGN(query.started_after_ms, parse_time(*after, "startedAfter"));
  }
  std::string_view order = request.query.get("order").value_or("asc");
  if (order != "asc" && order != "desc") return fail(bad("order", "asc or desc"));
  query.newest_first = order == "desc";
  ATOLL_ASSIGN(uint64_t limit, number(request, "limit", query.limit));
  if (limit == 0 || limit > kMaxPage) return fail(bad("limit", "1 to 1000"));
  query.limit = limit;
  if (auto token = request.query.get("nextToken")) {
    auto after = base64url_decode(*token);
    if (!after) return fail(bad("nextToken", "this token is not from a list"));
    query.after = *after;
  }
  return query;
}

std::vector<sandbox::SandboxPtr> matching(Context& context, const ListQuery& query) {
  std::vector<sandbox::SandboxPtr> found;
  for (auto& sandbox : context.manager.list(context.who.caller)) {
    if (matches(sandbox->record, query)) found.push_back(std::move(sandbox));
  }
  auto key = [](const sandbox::SandboxPtr& one) {
    return std::pair(one->record.started_at_ms, one->record.id);
  };
  std::sort(found.begin(), found.end(), [&](const auto& a, const auto& b) {
    return query.newest_first ? key(b) < key(a) : key(a) < key(b);
  });
  return found;
}

// The token is a place in the order, so that a sandbox which ends meanwhile loses nobody theirs.
Page page_of(const std::vector<sandbox::SandboxPtr>& found, const ListQuery& query) {
  auto place = [](const sandbox::SandboxPtr& one) {
    std::string time = std::to_string(one->record.started_at_ms);
    return std::string(20 - std::min<size_t>(20, time.size()), '0') + time + one->record.id;
  };
  Page page;
  for (const auto& one : found) {
    std::string here = place(one);
    bool passed =
        !query.after.empty() && (query.newest_first ? here >= query.after : here <= query.after);
    if (passed) continue;
    if (page.items.size() == query.limit) {
      page.next = base64url_encode(place(page.items.back()));
      break;
    }
    page.items.push_back(one);
  }
  return page;
}

}  // namespace atl::api::e2b
