#include <boost/json.hpp>

#include "client/client_impl.h"
#include "client/decode.h"
#include "client/streams.h"
#include "http/target.h"

namespace atl {
namespace {

namespace json = boost::json;
using client::file_target;
using client::parse_answer;
using client::runtime_target;

}  // namespace

Result<FileEntry> Client::stat(std::string_view sandbox, std::string_view path) {
  ATOLL_ASSIGN(std::string answer,
               impl_->call(impl_->quick, "GET", file_target(sandbox, "/fs/stat", path), {}));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  return client::to_entry(client::unwrap(value));
}

Result<bool> Client::exists(std::string_view sandbox, std::string_view path) {
  ATOLL_ASSIGN(std::string answer,
               impl_->call(impl_->quick, "GET", file_target(sandbox, "/fs/exists", path), {}));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  return client::flag_of(client::unwrap(value), "exists");
}

Result<DirectoryList> Client::list_files(std::string_view sandbox, std::string_view path,
                                         const ListFilesRequest& request) {
  std::string target = file_target(sandbox, "/fs/list", path);
  target.append(request.recursive ? "?recursive=true" : "?recursive=false");
  target.append(request.hidden ? "&all=true" : "&all=false");
  if (request.limit != 0) target.append("&limit=").append(std::to_string(request.limit));
  ATOLL_ASSIGN(std::string answer, impl_->call(impl_->quick, "GET", target, {}));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  const json::value& data = client::unwrap(value);
  DirectoryList list;
  list.truncated = client::flag_of(data, "truncated");
  list.entries = client::list_of(client::member(data, "entries"), client::to_entry);
  return list;
}

Result<void> Client::make_directory(std::string_view sandbox, std::string_view path) {
  std::string target = file_target(sandbox, "/fs/mkdir", path) + "?recursive=true";
  ATOLL_TRY(impl_->call(impl_->quick, "POST", target, {}));
  return {};
}

Result<void> Client::move(std::string_view sandbox, std::string_view from, std::string_view to) {
  json::object body{{"from", client::absolute_path(from)}, {"to", client::absolute_path(to)}};
  ATOLL_TRY(impl_->call(impl_->quick, "POST", runtime_target(sandbox, "/fs/move"),
                        json::serialize(body)));
  return {};
}

Result<void> Client::remove_path(std::string_view sandbox, std::string_view path,
                                 const RemovePathRequest& request) {
  std::string target = file_target(sandbox, "/fs", path);
  target.append(request.recursive ? "?recursive=true" : "?recursive=false");
  target.append(request.force ? "&force=true" : "&force=false");
  ATOLL_TRY(impl_->call(impl_->patient, "DELETE", target, {}));
  return {};
}

Result<SearchAnswer> Client::search(std::string_view sandbox, const SearchRequest& request) {
  json::object body{{"pattern", request.pattern}};
  if (!request.glob.empty()) body["glob"] = request.glob;
  if (!request.cwd.empty()) body["cwd"] = client::absolute_path(request.cwd);
  if (request.max_results != 0) body["maxResults"] = static_cast<int64_t>(request.max_results);
  if (request.context != 0) body["context"] = static_cast<int64_t>(request.context);
  if (request.ignore_case) body["ignoreCase"] = true;
  ATOLL_ASSIGN(std::string answer,
               impl_->call(impl_->patient, "POST", runtime_target(sandbox, "/search"),
                           json::serialize(body)));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  const json::value& data = client::unwrap(value);
  SearchAnswer found;
  found.truncated = client::flag_of(data, "truncated");
  found.matches = client::list_of(client::member(data, "matches"), client::to_match);
  return found;
}

Result<WatchReader> Client::watch(std::string_view sandbox, std::string_view path,
                                  WatchScope scope) {
  std::string target = file_target(sandbox, "/fs/watch", path);
  target.append(scope == WatchScope::Recursive ? "?recursive=true" : "?recursive=false");
  ATOLL_ASSIGN(http::ResponseStream response,
               impl_->open(target, {{"Accept", "text/event-stream"}}));
  // The server says "ready" once nothing can escape it.
  ATOLL_ASSIGN(std::optional<http::Event> first, response.next_event());
  if (!first) return fail(ErrorCode::Unavailable, "the server ended the watch at once");
  return WatchReader(std::make_unique<WatchReader::State>(std::move(response)));
}

}  // namespace atl
