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

CheckpointInfo to_checkpoint(const json::value& value) {
  SnapshotInfo like = to_snapshot(value);
  return {.id = text_of(value, "checkpointId"),
          .sandbox = std::move(like.sandbox),
          .sandbox_name = std::move(like.sandbox_name),
          .message = std::move(like.message),
          .tags = std::move(like.tags),
          .created_at = std::move(like.created_at),
          .bytes = like.bytes,
          .frozen_us = like.frozen_us,
          .total_us = like.total_us,
          .json = std::move(like.json)};
}

json::object body_of(const SnapshotRequest& request) {
  json::object body;
  if (!request.message.empty()) body["message"] = request.message;
  if (!request.tags.empty()) body["tags"] = json::array(request.tags.begin(), request.tags.end());
  if (request.keep) body["keepSeconds"] = static_cast<int64_t>(request.keep->count());
  return body;
}

}  // namespace

Result<CheckpointInfo> Client::checkpoint(std::string_view sandbox, const SnapshotRequest& request,
                                          bool leave_running) {
  json::object body = body_of(request);
  if (!leave_running) body["leaveRunning"] = false;
  ATOLL_ASSIGN(std::string answer,
               impl_->call(impl_->patient, "POST", sandbox_target(sandbox, "/checkpoints"),
                           json::serialize(body)));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  return to_checkpoint(value);
}

Result<std::vector<CheckpointInfo>> Client::checkpoints(std::string_view sandbox) {
  std::string target =
      sandbox.empty() ? "/v1/checkpoints" : sandbox_target(sandbox, "/checkpoints");
  ATOLL_ASSIGN(std::string answer, impl_->call(impl_->quick, "GET", target, {}));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  return client::list_of(member(value, "checkpoints"), to_checkpoint);
}

Result<void> Client::remove_checkpoint(std::string_view checkpoint) {
  std::string target = "/v1/checkpoints/" + http::percent_encode(checkpoint);
  ATOLL_TRY(impl_->call(impl_->quick, "DELETE", target, {}));
  return {};
}

Result<SnapshotInfo> Client::snapshot(std::string_view sandbox, const SnapshotRequest& request) {
  json::object body = body_of(request);
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
  return restored(impl_->call(impl_->patient, "POST", sandbox_target(sandbox, "/restore"), body));
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
  if (request.memory) body["memory"] = true;
  if (!request.checkpoint.empty()) body["checkpointId"] = request.checkpoint;
  bool memory = request.memory || !request.checkpoint.empty();
  ATOLL_ASSIGN(std::string answer,
               impl_->call(memory ? impl_->patient : impl_->quick, "POST",
                           sandbox_target(sandbox, "/fork"), json::serialize(body)));
  ATOLL_ASSIGN(json::value value, parse_answer(answer));
  return client::list_of(member(value, "sandboxes"), client::to_sandbox);
}

}  // namespace atl
