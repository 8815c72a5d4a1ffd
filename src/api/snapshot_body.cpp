#include "api/snapshot_body.h"

namespace atl::api {

static constexpr size_t kMaxMessage = 4096;
static constexpr size_t kMaxTags = 32;
static constexpr int64_t kMaxKeepSeconds = int64_t{10} * 365 * 86400;

static Error bad(std::string_view field, std::string message) {
  return Error(ErrorCode::InvalidArgument, std::move(message)).with_field(field);
}

Result<sandbox::SnapshotInput> read_snapshot_fields(http::JsonObjectReader& reader) {
  sandbox::SnapshotInput input;
  ATOLL_ASSIGN(auto message, reader.optional_string("message"));
  ATOLL_ASSIGN(input.tags, reader.string_array("tags"));
  ATOLL_ASSIGN(auto keep, reader.optional_integer("keepSeconds", 1, kMaxKeepSeconds));
  input.message = message.value_or("");
  input.keep_s = static_cast<uint32_t>(keep.value_or(0));
  if (input.message.size() > kMaxMessage) return fail(bad("message", "at most 4096 bytes"));
  if (input.tags.size() > kMaxTags) return fail(bad("tags", "at most 32 tags"));
  for (const std::string& tag : input.tags) {
    if (tag.empty() || tag.size() > 128) return fail(bad("tags", "a tag has 1 to 128 bytes"));
  }
  return input;
}

Result<sandbox::SnapshotPtr> find_checkpoint(Context& context, const std::string& id_or_tag) {
  auto found = context.manager.snapshots().find(context.who.caller, id_or_tag);
  if (found != nullptr && found->memory) return found;
  return fail(ErrorCode::NotFound,
              "no checkpoint '" + id_or_tag + "'; list them to see what there is");
}

Result<std::string> source_of_snapshots(Context& context, const std::string& sandbox) {
  auto id = context.manager.known_id(context.who.caller, sandbox);
  if (id || context.manager.snapshots().list(context.who.caller, sandbox).empty()) return id;
  return sandbox;
}

}  // namespace atl::api
