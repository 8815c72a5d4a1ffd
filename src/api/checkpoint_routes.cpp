// Checkpoints: snapshots with the processes of that moment.
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "api/routes.h"
#include "api/shapes.h"
#include "api/snapshot_body.h"

namespace atl::api {
namespace {

namespace json = boost::json;

constexpr size_t kMaxBody = 64u << 10;

json::object checkpoint_json(const sandbox::Snapshot& checkpoint) {
  json::object object{
      {"checkpointId", checkpoint.id},
      {"sandboxId", checkpoint.source.id},
      {"sandboxName", nullptr},
      {"message", checkpoint.message},
      {"tags", json::array(checkpoint.tags.begin(), checkpoint.tags.end())},
      {"createdAt", iso_time(checkpoint.created_at_ms)},
      {"sizeBytes", checkpoint.memory_bytes},
      {"hasMemoryState", true},
      {"hasFilesystemSnapshot", true},
      {"frozenMicroseconds", checkpoint.frozen_us},
      {"totalMicroseconds", checkpoint.total_us},
  };
  if (!checkpoint.source.spec.name.empty()) object["sandboxName"] = checkpoint.source.spec.name;
  if (checkpoint.expires_at_ms != 0) object["expiresAt"] = iso_time(checkpoint.expires_at_ms);
  return object;
}

Task<Result<void>> take(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto sandbox, find_sandbox(context, request));
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, kMaxBody));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  http::JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(sandbox::SnapshotInput input, read_snapshot_fields(reader));
  ATOLL_CO_ASSIGN(auto leave_running, reader.optional_bool("leaveRunning"));
  ATOLL_CO_ASSIGN(auto with_files, reader.optional_bool("includeSnapshot"));
  ATOLL_CO_TRY(reader.finish());
  if (!with_files.value_or(true)) {
    co_return fail(Error(ErrorCode::NotSupported, "a checkpoint always has the files of its moment")
                       .with_field("includeSnapshot"));
  }
  ATOLL_CO_ASSIGN(auto checkpoint, co_await context.manager.take_checkpoint(
                                       sandbox, std::move(input), leave_running.value_or(true)));
  context.made = checkpoint->id;
  co_return co_await writer.send_json(json::serialize(checkpoint_json(*checkpoint)), 201);
}

Task<Result<void>> send_list(Context& context, const std::string& sandbox,
                             http::ResponseWriter& writer) {
  json::array list;
  for (const auto& checkpoint : context.manager.snapshots().list(context.who.caller, sandbox)) {
    if (checkpoint->memory) list.push_back(checkpoint_json(*checkpoint));
  }
  co_return co_await writer.send_json(
      json::serialize(json::object{{"checkpoints", std::move(list)}}));
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
  ATOLL_CO_ASSIGN(auto checkpoint, find_checkpoint(context, request.param("checkpoint")));
  co_return co_await writer.send_json(json::serialize(checkpoint_json(*checkpoint)));
}

Task<Result<void>> remove(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto checkpoint, find_checkpoint(context, request.param("checkpoint")));
  ATOLL_CO_TRY(co_await context.manager.remove_snapshot(checkpoint));
  co_return co_await writer.send_json(std::string(kSuccess));
}

// Whether processes can be kept on this host: by a trial, now.
Task<Result<void>> criu_status(Context& context, http::Request&, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(MemorySupport support, co_await context.manager.backend().memory_support());
  json::object body{{"available", support.available}};
  if (!support.version.empty()) body["criuVersion"] = support.version;
  if (!support.reason.empty()) body["reason"] = support.reason;
  body["requirements"] =
      json::array{"criu 4.2 or newer (packaging/fetch-criu)", "cgroup v2 mounted",
                  "a kernel with CONFIG_CHECKPOINT_RESTORE"};
  co_return co_await writer.send_json(json::serialize(body));
}

}  // namespace

void add_checkpoint_routes(ControlRoutes& routes) {
  routes.add(Access::Write, "POST", "/v1/sandboxes/{id}/checkpoints", take);
  routes.add(Access::Read, "GET", "/v1/sandboxes/{id}/checkpoints", list_of_sandbox);
  routes.add(Access::Write, "DELETE", "/v1/sandboxes/{id}/checkpoints/{checkpoint}", remove);
  routes.add(Access::Read, "GET", "/v1/checkpoints", list_all);
  routes.add(Access::Read, "GET", "/v1/checkpoints/{checkpoint}", get);
  routes.add(Access::Write, "DELETE", "/v1/checkpoints/{checkpoint}", remove);
  routes.add(Access::Read, "GET", "/v1/system/criu-status", criu_status);
}

}  // namespace atl::api
