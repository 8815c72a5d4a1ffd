// Snapshots, and sandboxes that are made from them.
#include <boost/json.hpp>

#include "client/client_impl.h"
#include "client/decode.h"
#include "http/target.h"

namespace atl {
namespace {

namespace json = boost::json;
using client::member;
using client::number_of;
using client::parse_answer;
using client::sandbox_target;
using client::text_of;
using client::to_snapshot;

}  // namespace

Result<SnapshotInfo> Client::snapshot(std::string_view sandbox, const SnapshotRequest& request) {
  json::object body;
  if (!request.message.empty()) body["message"] = request.message;
  if (!request.tags.empty()) body["tags"] = json::array(request.tags.begin(), request.tags.end());
  if (request.keep) body["keepSeconds"] = static_cast<int64_t>(request.keep->count());
  ATOLL_ASSIGN(std::string answer,
               impl_->call(impl_->quick, "POST", sandbox_target(sandbox, "/snapshots"),
                           json::serialize(body)));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  return to_snapshot(value);
}

Result<std::vector<SnapshotInfo>> Client::snapshots(std::string_view sandbox) {
  std::string target = sandbox.empty() ? "/v1/snapshots" : sandbox_target(sandbox, "/snapshots");
  ATOLL_ASSIGN(std::string answer, impl_->call(impl_->quick, "GET", target, {}));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  return client::list_of(member(value, "snapshots"), to_snapshot);
}

Result<void> Client::remove_snapshot(std::string_view snapshot) {
  std::string target = "/v1/snapshots/" + http::percent_encode(snapshot);
  ATOLL_TRY(impl_->call(impl_->quick, "DELETE", target, {}));
  return {};
}

Result<std::vector<SnapshotInfo>> Client::prune_snapshots(const PruneRequest& request) {
  json::object body{{"dryRun", request.dry_run}};
  if (!request.sandbox.empty()) body["sandbox"] = request.sandbox;
  if (request.newest) body["keepNewest"] = *request.newest;
  if (request.younger_than) {
    body["keepYoungerThanSeconds"] = static_cast<int64_t>(request.younger_than->count());
  }
  ATOLL_ASSIGN(std::string answer,
               impl_->call(impl_->quick, "POST", "/v1/snapshots/prune", json::serialize(body)));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  return client::list_of(member(value, "removed"), to_snapshot);
}

static Result<Sandbox> restored(Result<std::string> answer) {
  if (!answer) return fail(std::move(answer).error());
  ATOLL_ASSIGN(json::value value, parse_answer(*answer));
  return client::to_sandbox(value);
}

Result<Sandbox> Client::restore(std::string_view sandbox, std::string_view snapshot) {
  std::string body = json::serialize(json::object{{"snapshotId", snapshot}});
  return restored(impl_->call(impl_->quick, "POST", sandbox_target(sandbox, "/restore"), body));
}

Result<Sandbox> Client::restore_before(std::string_view sandbox, uint32_t command) {
  std::string body = json::serialize(json::object{{"to", command}});
  return restored(impl_->call(impl_->quick, "POST", sandbox_target(sandbox, "/restore"), body));
}

static HistoryPoint to_point(const json::value& value) {
  return {.snapshot = text_of(value, "snapshotId"),
          .number = static_cast<uint32_t>(number_of(value, "number")),
          .command = text_of(value, "command"),
          .created_at = text_of(value, "createdAt"),
          .json = json::serialize(value)};
}

Result<std::vector<HistoryPoint>> Client::history(std::string_view sandbox) {
  ATOLL_ASSIGN(std::string answer,
               impl_->call(impl_->quick, "GET", sandbox_target(sandbox, "/history"), {}));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  return client::list_of(member(value, "points"), to_point);
}

Result<HistoryPoint> Client::undo(std::string_view sandbox) {
  ATOLL_ASSIGN(std::string answer,
               impl_->call(impl_->quick, "POST", sandbox_target(sandbox, "/undo"), "{}"));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  return to_point(value);
}

static FileDifference to_difference(const json::value& value) {
  return {.path = text_of(value, "path"),
          .kind = text_of(value, "kind"),
          .type = text_of(value, "type"),
          .size_before = number_of(value, "sizeBefore"),
          .size_after = number_of(value, "sizeAfter"),
          .text = text_of(value, "text")};
}

Result<DiffAnswer> Client::diff(std::string_view sandbox, std::string_view from,
                                std::string_view to, bool with_texts) {
  std::string query = "?from=" + http::percent_encode(from);
  if (!to.empty()) query += "&to=" + http::percent_encode(to);
  if (with_texts) query += "&text=true";
  ATOLL_ASSIGN(std::string answer,
               impl_->call(impl_->patient, "GET", sandbox_target(sandbox, "/diff" + query), {}));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  return DiffAnswer{.changes = client::list_of(member(value, "changes"), to_difference),
                    .complete = client::flag_of(value, "complete"),
                    .json = std::move(answer)};
}

Result<std::vector<Sandbox>> Client::fork(std::string_view sandbox, const ForkRequest& request) {
  json::object body{{"count", static_cast<int64_t>(request.count)}};
  if (!request.name.empty()) body["name"] = request.name;
  json::object env;
  for (const auto& [name, value] : request.env) env[name] = value;
  if (!env.empty()) body["env"] = std::move(env);
  ATOLL_ASSIGN(
      std::string answer,
      impl_->call(impl_->quick, "POST", sandbox_target(sandbox, "/fork"), json::serialize(body)));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  return client::list_of(member(value, "sandboxes"), client::to_sandbox);
}

}  // namespace atl
