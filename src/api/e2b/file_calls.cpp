// envd's filesystem service, but for its watches.
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "api/e2b/call.h"
#include "api/e2b/connect.h"
#include "api/e2b/routes.h"
#include "api/e2b/shapes.h"
#include "api/file_path.h"

namespace atl::api::e2b {
namespace {

namespace json = boost::json;
using http::JsonObjectReader;

constexpr size_t kBytesPerEntry = 1024;  // of a listing, as objects and as text
constexpr int64_t kMaxDepth = 512;

struct PathCall {
  Call call;
  std::string path;
};

// Most calls name one path and nothing else.
Task<Result<PathCall>> open_path(Context& context, http::Request& request) {
  ATOLL_CO_ASSIGN(auto document, co_await read_message(request));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(auto path, reader.optional_string("path"));
  ATOLL_CO_TRY(reader.finish());
  ATOLL_CO_TRY(check_path(path.value_or(""), "path"));
  ATOLL_CO_ASSIGN(Call call, co_await open_call(context, request));
  std::string resolved = call.resolve(path.value_or(""));
  co_return PathCall{std::move(call), std::move(resolved)};
}

Task<Result<void>> reply_entry(const FileEntry& entry, http::ResponseWriter& writer) {
  return writer.send_json(json::serialize(json::object{{"entry", entry_json(entry)}}));
}

Task<Result<void>> stat(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(PathCall on, co_await open_path(context, request));
  ATOLL_CO_ASSIGN(FileEntry entry, co_await on.call.session().stat(on.path, on.call.user));
  co_return co_await reply_entry(entry, writer);
}

Task<Result<void>> make_dir(Context& context, http::Request& request,
                            http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(PathCall on, co_await open_path(context, request));
  SandboxSession& session = on.call.session();
  if (auto there = co_await session.stat(on.path, on.call.user)) {
    bool directory =
        there->kind == FileKind::Directory || there->target_kind == FileKind::Directory;
    if (directory) co_return fail(ErrorCode::Conflict, "directory already exists: " + on.path);
    co_return fail(
        Error(ErrorCode::InvalidArgument, "path already exists but it is not a directory")
            .with_field("path"));
  }
  ATOLL_CO_TRY(co_await session.make_directory(on.path, true, on.call.user));
  ATOLL_CO_ASSIGN(FileEntry entry, co_await session.stat(on.path, on.call.user));
  co_return co_await reply_entry(entry, writer);
}

Task<Result<void>> move(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto document, co_await read_message(request));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(std::string source, reader.require_string("source"));
  ATOLL_CO_ASSIGN(std::string destination, reader.require_string("destination"));
  ATOLL_CO_TRY(reader.finish());
  ATOLL_CO_TRY(check_path(source, "source"));
  ATOLL_CO_TRY(check_path(destination, "destination"));
  ATOLL_CO_ASSIGN(Call call, co_await open_call(context, request));
  std::string to = call.resolve(destination);
  ATOLL_CO_TRY(co_await call.session().move(call.resolve(source), to, call.user));
  ATOLL_CO_ASSIGN(FileEntry entry, co_await call.session().stat(to, call.user));
  co_return co_await reply_entry(entry, writer);
}

Task<Result<void>> remove(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(PathCall on, co_await open_path(context, request));
  RemoveOptions options;
  options.force = true;  // what is not there is removed
  options.recursive = true;
  options.user = on.call.user;
  ATOLL_CO_TRY(co_await on.call.session().remove_path(on.path, options));
  co_return co_await writer.send_json("{}");
}

// How many names below `base` a path is.
int64_t depth_below(std::string_view base, std::string_view path) {
  path.remove_prefix(std::min(path.size(), base.size()));
  return std::count(path.begin(), path.end(), '/') + (base == "/" ? 1 : 0);
}

Task<Result<void>> list_dir(Context& context, http::Request& request,
                            http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto document, co_await read_message(request));
  ATOLL_CO_ASSIGN(const json::object* object, document.object());
  JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(auto path, reader.optional_string("path"));
  ATOLL_CO_ASSIGN(auto asked, reader.optional_integer("depth", 0, UINT32_MAX));
  ATOLL_CO_TRY(reader.finish());
  ATOLL_CO_TRY(check_path(path.value_or(""), "path"));
  ATOLL_CO_ASSIGN(Call call, co_await open_call(context, request));
  int64_t depth = std::clamp<int64_t>(asked.value_or(1), 1, kMaxDepth);
  std::string base = call.resolve(path.value_or(""));
  while (base.size() > 1 && base.back() == '/') base.pop_back();
  ListOptions options;
  options.recursive = depth > 1;
  options.user = call.user;
  ATOLL_CO_ASSIGN(FileList found, co_await call.session().list(base, options));
  ATOLL_CO_TRY(request.memory.take(kBytesPerEntry * found.entries.size()));
  json::array entries;
  for (const FileEntry& entry : found.entries) {
    if (depth_below(base, entry.path) <= depth) entries.push_back(entry_json(entry));
  }
  co_return co_await writer.send_json(
      json::serialize(json::object{{"entries", std::move(entries)}}));
}

}  // namespace

void add_file_calls(ControlRoutes& routes) {
  routes.add(Access::RuntimeRead, "POST", "/filesystem.Filesystem/Stat", stat);
  routes.add(Access::RuntimeWrite, "POST", "/filesystem.Filesystem/MakeDir", make_dir);
  routes.add(Access::RuntimeWrite, "POST", "/filesystem.Filesystem/Move", move);
  routes.add(Access::RuntimeWrite, "POST", "/filesystem.Filesystem/Remove", remove);
  routes.add(Access::RuntimeRead, "POST", "/filesystem.Filesystem/ListDir", list_dir);
}

}  // namespace atl::api::e2b
