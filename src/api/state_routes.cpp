// Snapshots, and what is made from them: restored, created and forked sandboxes.
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "api/routes.h"
#include "api/sandbox_body.h"
#include "api/shapes.h"
#include "api/snapshot_body.h"
#include "sandbox/retention.h"

namespace atl::api {
namespace {

namespace json = boost::json;

constexpr size_t kMaxBody = 64u << 10;
constexpr int64_t kMaxAgeSeconds = int64_t{10} * 365 * 86400;

Error bad(std::string_view field, std::string message) {
  return Error(ErrorCode::InvalidArgument, std::move(message)).with_field(field);
}

Result<sandbox::SnapshotInput> read_input(const http::JsonDocument& document) {
  ATOLL_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader reader(*object);
  ATOLL_ASSIGN(sandbox::SnapshotInput input, read_snapshot_fields(reader));
  ATOLL_ASSIGN(auto paths, reader.string_array("paths"));
  ATOLL_TRY(reader.finish());
  if (!paths.empty()) {
    return fail(
        Error(ErrorCode::NotSupported, "a snapshot always has all files").with_field("paths"));
  }
  return input;
}

Task<Result<void>> take(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, kMaxBody));
  ATOLL_CO_ASSIGN(sandbox::SnapshotInput input, read_input(document));
  ATOLL_CO_ASSIGN(auto snapshot, co_await context.manager.take_snapshot(sandbox, std::move(input)));
  context.made = snapshot->id;
  co_return co_await writer.send_json(json::serialize(snapshot_json(*snapshot)), 201);
}

Task<Result<void>> send_list(Context& context, const std::string& sandbox,
                             http::ResponseWriter& writer) {
  json::array list;
  for (const auto& snapshot : context.manager.snapshots().list(context.who.caller, sandbox)) {
    if (!snapshot->automatic && !snapshot->memory) list.push_back(snapshot_json(*snapshot));
  }
  co_return co_await writer.send_json(
      json::serialize(json::object{{"snapshots", std::move(list)}}));
}

Task<Result<void>> list_of_sandbox(Context& context, http::Request& request,
                                   http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(std::string source, source_of_snapshots(context, request.param("id")));
  co_return co_await send_list(context, source, writer);
}

Task<Result<void>> list_all(Context& context, http::Request&, http::ResponseWriter& writer) {
  co_return co_await send_list(context, "", writer);
}

Task<Result<void>> get(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto snapshot,
                  context.manager.find_snapshot(context.who.caller, request.param("snapshot")));
  co_return co_await writer.send_json(json::serialize(snapshot_json(*snapshot)));
}

Task<Result<void>> remove(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto snapshot,
                  context.manager.find_snapshot(context.who.caller, request.param("snapshot")));
  ATOLL_CO_TRY(co_await context.manager.remove_snapshot(snapshot));
  co_return co_await writer.send_json(std::string(kSuccess));
}

Task<Result<void>> prune(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, kMaxBody));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(auto of, reader.optional_string("sandbox"));
  ATOLL_CO_ASSIGN(auto newest, reader.optional_integer("keepNewest", 0, 1'000'000));
  ATOLL_CO_ASSIGN(auto younger,
                  reader.optional_integer("keepYoungerThanSeconds", 0, kMaxAgeSeconds));
  ATOLL_CO_ASSIGN(auto dry_run, reader.optional_bool("dryRun"));
  ATOLL_CO_TRY(reader.finish());
  if (!newest && !younger) co_return fail(bad("keepNewest", "say what is to be kept"));
  std::string sandbox;
  if (of) {
    ATOLL_CO_ASSIGN(sandbox, context.manager.known_id(context.who.caller, *of));
  }
  sandbox::Retention retention;
  if (newest) retention.newest = static_cast<uint32_t>(*newest);
  if (younger) retention.younger_than_ms = *younger * 1000;
  auto all = context.manager.snapshots().list(context.who.caller, sandbox);
  json::array removed;
  for (const auto& snapshot : surplus_snapshots(all, retention, sandbox::wall_clock_ms())) {
    if (!dry_run.value_or(false)) ATOLL_CO_TRY(co_await context.manager.remove_snapshot(snapshot));
    removed.push_back(snapshot_json(*snapshot));
  }
  co_return co_await writer.send_json(
      json::serialize(json::object{{"removed", std::move(removed)}}));
}

Task<Result<void>> restore(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, kMaxBody));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader reader(*object);
  // Checkpoints are found by their own name for it, and by the other: what it is, it says itself.
  const char* field = reader.has("checkpointId") ? "checkpointId" : "snapshotId";
  ATOLL_CO_ASSIGN(auto id, reader.optional_string(field));
  ATOLL_CO_ASSIGN(auto number, reader.optional_integer("to", 1, UINT32_MAX));
  ATOLL_CO_TRY(reader.finish());
  if (id.has_value() == number.has_value()) {
    co_return fail(bad("snapshotId", "give either a snapshotId or, in to, a command's number"));
  }
  auto found = id ? context.manager.find_snapshot(context.who.caller, *id)
                  : context.manager.find_point(*sandbox, static_cast<uint32_t>(*number));
  ATOLL_CO_ASSIGN(auto snapshot, std::move(found));
  ATOLL_CO_TRY(co_await context.manager.restore(sandbox, snapshot));
  co_return co_await writer.send_json(json::serialize(sandbox_json(context, *sandbox)));
}

Task<Result<void>> history(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  json::array points;
  for (const auto& point : context.manager.history(*sandbox)) {
    points.push_back(json::object{{"snapshotId", point->id},
                                  {"number", point->number},
                                  {"command", point->message},
                                  {"createdAt", iso_time(point->created_at_ms)},
                                  {"frozenMicroseconds", point->frozen_us}});
  }
  json::object body{{"history", sandbox->record.spec.history}, {"points", std::move(points)}};
  co_return co_await writer.send_json(json::serialize(body));
}

Task<Result<void>> undo(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(auto point, co_await context.manager.undo(sandbox));
  json::object body{{"snapshotId", point->id}, {"command", point->message}};
  body["sandbox"] = sandbox_json(context, *sandbox);
  co_return co_await writer.send_json(json::serialize(body));
}

json::object change_json(const StateChange& change) {
  static constexpr std::string_view kKinds[] = {"added", "changed", "removed"};
  std::string_view type = change.type == 'd'   ? "directory"
                          : change.type == 'l' ? "symlink"
                          : change.type == 'f' ? "file"
                                               : "other";
  json::object object{{"path", change.path},
                      {"kind", kKinds[static_cast<size_t>(change.kind)]},
                      {"type", type},
                      {"sizeBefore", change.size_before},
                      {"sizeAfter", change.size_after}};
  if (!change.text.empty()) object["text"] = change.text;
  return object;
}

Task<Result<void>> diff(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  const sandbox::Caller& caller = context.who.caller;
  auto from = request.query.get("from");
  if (!from) co_return fail(bad("from", "give the snapshot to compare with"));
  ATOLL_CO_ASSIGN(auto before, context.manager.find_snapshot(caller, std::string(*from)));
  sandbox::SnapshotPtr after;
  if (auto to = request.query.get("to")) {
    ATOLL_CO_ASSIGN(after, context.manager.find_snapshot(caller, std::string(*to)));
  }
  auto text = request.query.get("text");
  if (text && *text != "true" && *text != "false") co_return fail(bad("text", "true or false"));
  ATOLL_CO_ASSIGN(Difference found,
                  co_await context.manager.diff(sandbox, before, after, text == "true"));
  json::array changes;
  for (const StateChange& change : found.changes) changes.push_back(change_json(change));
  json::object body{{"from", before->id}, {"to", nullptr}, {"complete", found.complete}};
  if (after != nullptr) body["to"] = after->id;
  body["changes"] = std::move(changes);
  co_return co_await writer.send_json(json::serialize(body));
}

Task<Result<void>> fork(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, kMaxBody));
  ATOLL_CO_ASSIGN(ForkBody body, read_forks(sandbox->record.spec, document));
  const sandbox::Caller& caller = context.who.caller;
  sandbox::SnapshotPtr checkpoint;
  if (!body.checkpoint.empty()) {
    ATOLL_CO_ASSIGN(checkpoint, find_checkpoint(context, body.checkpoint));
  }
  bool memory = body.memory || checkpoint != nullptr;
  auto made = memory ? co_await context.manager.fork_memory(sandbox, caller, body.specs, checkpoint)
                     : co_await context.manager.fork(sandbox, caller, body.specs);
  if (!made) co_return fail(std::move(made).error());
  auto& copies = *made;
  json::array list;
  for (const auto& copy : copies) {
    list.push_back(sandbox_json(context, *copy));
    context.made += (context.made.empty() ? "" : " ") + copy->record.id;
  }
  json::object answer{{"sandbox", list.front()}, {"sandboxes", list}};
  co_return co_await writer.send_json(json::serialize(answer), 201);
}

}  // namespace

void add_state_routes(ControlRoutes& routes) {
  routes.add(Access::Write, "POST", "/v1/sandboxes/{id}/snapshot", take);
  routes.add(Access::Write, "POST", "/v1/sandboxes/{id}/snapshots", take);
  routes.add(Access::Read, "GET", "/v1/sandboxes/{id}/snapshots", list_of_sandbox);
  routes.add(Access::Read, "GET", "/v1/snapshots", list_all);
  routes.add(Access::Write, "POST", "/v1/snapshots/prune", prune);
  routes.add(Access::Read, "GET", "/v1/snapshots/{snapshot}", get);
  routes.add(Access::Write, "DELETE", "/v1/snapshots/{snapshot}", remove);
  routes.add(Access::Write, "POST", "/v1/sandboxes/{id}/restore", restore);
  routes.add(Access::Write, "POST", "/v1/sandboxes/{id}/fork", fork);
  routes.add(Access::Read, "GET", "/v1/sandboxes/{id}/diff", diff);
  routes.add(Access::Read, "GET", "/v1/sandboxes/{id}/history", history);
  routes.add(Access::Write, "POST", "/v1/sandboxes/{id}/undo", undo);
}

}  // namespace atl::api
