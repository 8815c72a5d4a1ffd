#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "api/file_path.h"
#include "api/routes.h"
#include "api/shapes.h"
#include "base/file_change.h"
#include "base/json_escape.h"
#include "http/base64.h"
#include "http/sse.h"

namespace atl::api {
namespace {

namespace json = boost::json;

// What fits into one JSON answer; larger files are downloaded.
constexpr uint64_t kMaxInline = 64u << 20;
// A file that is read as a whole is in memory as it is, encoded, and as an answer.
constexpr size_t kCopies = 4;
constexpr size_t kBytesPerEntry = 1024;  // of a listing, as objects and as text

Result<bool> wants_base64(const std::optional<std::string>& encoding) {
  if (!encoding || *encoding == "utf8" || *encoding == "utf-8") return false;
  if (*encoding == "base64") return true;
  return fail(
      Error(ErrorCode::InvalidArgument, "encoding is 'utf8' or 'base64'").with_field("encoding"));
}

Task<Result<std::string>> read_whole(FileReader& reader, http::MemoryShare& memory) {
  std::string content;
  for (;;) {
    ATOLL_CO_ASSIGN(std::string_view part, co_await reader.read());
    if (part.empty()) co_return content;
    ATOLL_CO_TRY(memory.take(kCopies * part.size()));
    content.append(part);
    if (content.size() > kMaxInline) {
      co_return fail(ErrorCode::TooLarge, "the file has more than 64 MiB; download it instead");
    }
  }
}

Task<Result<void>> read(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, 64u << 10));
  ATOLL_CO_ASSIGN(const auto* object, document.object());
  http::JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(std::string path, reader.require_string("path"));
  ATOLL_CO_ASSIGN(auto encoding, reader.optional_string("encoding"));
  ATOLL_CO_ASSIGN(auto first, reader.optional_integer("startLine", 1, INT32_MAX));
  ATOLL_CO_ASSIGN(auto last, reader.optional_integer("endLine", 1, INT32_MAX));
  ATOLL_CO_TRY(reader.finish());
  ATOLL_CO_TRY(check_path(path, "path"));
  ATOLL_CO_ASSIGN(bool base64, wants_base64(encoding));
  if (first && last && *last < *first) {
    co_return fail(
        Error(ErrorCode::InvalidArgument, "endLine is before startLine").with_field("endLine"));
  }
  ReadOptions options;
  if (first || last) options.first_line = static_cast<uint32_t>(first.value_or(1));
  if (last) options.last_line = static_cast<uint32_t>(*last);
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_ASSIGN(auto file, co_await target.session->read_file(std::move(path), options));
  ATOLL_CO_ASSIGN(std::string content, co_await read_whole(*file, request.memory));
  if (!base64 && !is_valid_utf8(content)) {
    co_return fail(
        Error(ErrorCode::InvalidArgument,
              "the file is not UTF-8 text; read it with encoding 'base64' or download it")
            .with_field("encoding"));
  }
  std::string body = R"({"success":true,"data":{"encoding":")";
  body += base64 ? "base64" : "utf8";
  body += "\",\"size\":" + std::to_string(content.size()) + ",\"content\":";
  append_json_string(body, base64 ? http::base64_encode(content) : content);
  co_return co_await writer.send_json(body + "}}");
}

Task<Result<void>> write(Context& context, http::Request& request, http::ResponseWriter& writer) {
  // First of all: nobody's content is not worth reading.
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, kMaxInline * 4 / 3));
  ATOLL_CO_ASSIGN(const auto* object, document.object());
  http::JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(std::string path, reader.require_string("path"));
  ATOLL_CO_ASSIGN(std::string content, reader.require_string("content"));
  ATOLL_CO_ASSIGN(auto encoding, reader.optional_string("encoding"));
  const json::value* mode = reader.any("mode");
  ATOLL_CO_TRY(reader.finish());
  ATOLL_CO_TRY(check_path(path, "path"));
  ATOLL_CO_ASSIGN(bool base64, wants_base64(encoding));
  if (base64) {
    auto decoded = http::base64_decode(content);
    if (!decoded) {
      co_return fail(
          Error(ErrorCode::InvalidArgument, "content is not base64").with_field("content"));
    }
    content = std::move(*decoded);
  }
  WriteOptions options;
  if (mode != nullptr) {
    // Both "0644" and 420 are in use among clients.
    if (mode->is_string()) {
      ATOLL_CO_ASSIGN(options.mode, parse_mode(std::string_view(mode->as_string())));
    } else if (mode->is_int64() && mode->as_int64() > 0 && mode->as_int64() <= 07777) {
      options.mode = static_cast<uint32_t>(mode->as_int64());
    } else {
      co_return fail(Error(ErrorCode::InvalidArgument, "mode is like \"0644\"").with_field("mode"));
    }
  }
  ATOLL_CO_ASSIGN(auto file, co_await target.session->write_file(std::move(path), options));
  ATOLL_CO_TRY(co_await file->write(content));
  ATOLL_CO_ASSIGN(FileEntry entry, co_await file->finish());
  co_return co_await writer.send_json(
      success(json::object{{"path", to_valid_utf8(entry.path)}, {"size", entry.size}}));
}

Task<Result<void>> list(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(std::string path, path_of(request));
  ListOptions options;
  ATOLL_CO_ASSIGN(options.recursive, request.query.flag("recursive"));
  if (request.query.get("all")) {
    ATOLL_CO_ASSIGN(options.hidden, request.query.flag("all"));
  }
  ATOLL_CO_ASSIGN(options.limit, number(request, "limit", 0));
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_ASSIGN(FileList found, co_await target.session->list(std::move(path), options));
  ATOLL_CO_TRY(request.memory.take(kBytesPerEntry * found.entries.size()));
  json::array entries;
  for (const FileEntry& entry : found.entries) entries.push_back(entry_json(entry));
  co_return co_await writer.send_json(
      success(json::object{{"entries", std::move(entries)}, {"truncated", found.truncated}}));
}

Task<Result<void>> stat(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(std::string path, path_of(request));
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_ASSIGN(FileEntry entry, co_await target.session->stat(std::move(path)));
  co_return co_await writer.send_json(success(entry_json(entry)));
}

Task<Result<void>> exists(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(std::string path, path_of(request));
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_ASSIGN(bool there, co_await target.session->exists(std::move(path)));
  co_return co_await writer.send_json(success(json::object{{"exists", there}}));
}

Task<Result<void>> mkdir(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(std::string path, path_of(request));
  ATOLL_CO_ASSIGN(bool recursive, request.query.flag("recursive"));
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_TRY(co_await target.session->make_directory(std::move(path), recursive));
  co_return co_await writer.send_json(std::string(kSuccess));
}

Task<Result<void>> move(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, 64u << 10));
  ATOLL_CO_ASSIGN(const auto* object, document.object());
  http::JsonObjectReader reader(*object);
  ATOLL_CO_ASSIGN(std::string from, reader.require_string("from"));
  ATOLL_CO_ASSIGN(std::string to, reader.require_string("to"));
  ATOLL_CO_TRY(reader.finish());
  ATOLL_CO_TRY(check_path(from, "from"));
  ATOLL_CO_TRY(check_path(to, "to"));
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_TRY(co_await target.session->move(std::move(from), std::move(to)));
  co_return co_await writer.send_json(std::string(kSuccess));
}

Task<Result<void>> remove(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(std::string path, path_of(request));
  RemoveOptions options;
  ATOLL_CO_ASSIGN(options.recursive, request.query.flag("recursive"));
  ATOLL_CO_ASSIGN(options.force, request.query.flag("force"));
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_TRY(co_await target.session->remove_path(std::move(path), options));
  co_return co_await writer.send_json(std::string(kSuccess));
}

Task<Result<void>> search(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(auto document, co_await read_json(request, 64u << 10));
  ATOLL_CO_ASSIGN(const auto* object, document.object());
  http::JsonObjectReader reader(*object);
  SearchOptions options;
  ATOLL_CO_ASSIGN(options.pattern, reader.require_string("pattern"));
  ATOLL_CO_ASSIGN(auto glob, reader.optional_string("glob"));
  ATOLL_CO_ASSIGN(auto cwd, reader.optional_string("cwd"));
  ATOLL_CO_ASSIGN(auto most, reader.optional_integer("maxResults", 1, 100'000));
  ATOLL_CO_ASSIGN(auto ignore_case, reader.optional_bool("ignoreCase"));
  ATOLL_CO_ASSIGN(auto lines, reader.optional_integer("context", 0, 100));
  ATOLL_CO_TRY(reader.finish());
  options.glob = glob.value_or("");
  options.path = cwd.value_or("");
  ATOLL_CO_TRY(check_path(options.path, "cwd"));
  options.max_results = static_cast<uint64_t>(most.value_or(0));
  options.ignore_case = ignore_case.value_or(false);
  options.context = static_cast<uint32_t>(lines.value_or(0));
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_ASSIGN(SearchResult found, co_await target.session->search(std::move(options)));
  ATOLL_CO_TRY(request.memory.take(kBytesPerEntry * found.matches.size()));
  auto texts = [](const std::vector<std::string>& list) {
    json::array array;
    for (const std::string& item : list) array.emplace_back(to_valid_utf8(item));
    return array;
  };
  json::array matches;
  for (const SearchMatch& match : found.matches) {
    matches.push_back(json::object{{"path", to_valid_utf8(match.path)},
                                   {"line", match.line},
                                   {"column", match.column},
                                   {"text", to_valid_utf8(match.text)},
                                   {"before", texts(match.before)},
                                   {"after", texts(match.after)}});
  }
  json::object body{{"matches", std::move(matches)}, {"truncated", found.truncated}};
  co_return co_await writer.send_json(json::serialize(body));
}

Task<Result<void>> watch(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(std::string path, path_of(request));
  ATOLL_CO_ASSIGN(bool recursive, request.query.flag("recursive"));
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_ASSIGN(auto opened, co_await target.session->watch(std::move(path), recursive));
  std::shared_ptr<FileWatcher> watcher = std::move(opened);
  writer.on_closed([watcher] { watcher->cancel(); });
  http::EventStream events(writer);
  ATOLL_CO_TRY(co_await events.start());
  ATOLL_CO_TRY(co_await events.send("ready", "{}"));
  for (;;) {
    ATOLL_CO_ASSIGN(FileEvent event, co_await watcher->next());
    json::object data{{"path", to_valid_utf8(event.path)}, {"isDir", event.is_dir}};
    ATOLL_CO_TRY(co_await events.send(std::string(to_string(event.change)), json::serialize(data)));
  }
}

}  // namespace

void add_file_routes(RuntimeRoutes& routes) {
  routes.add(Access::RuntimeRead, "POST", "/files/read", read);
  routes.add(Access::RuntimeWrite, "POST", "/files/write", write);
  routes.add(Access::RuntimeRead, "GET", "/fs/list/{path...}", list);
  routes.add(Access::RuntimeRead, "GET", "/fs/stat/{path...}", stat);
  routes.add(Access::RuntimeRead, "GET", "/fs/exists/{path...}", exists);
  routes.add(Access::RuntimeWrite, "POST", "/fs/mkdir/{path...}", mkdir);
  routes.add(Access::RuntimeWrite, "POST", "/fs/move", move);
  routes.add(Access::RuntimeWrite, "DELETE", "/fs/{path...}", remove);
  routes.add(Access::RuntimeRead, "GET", "/fs/watch/{path...}", watch);
  routes.add(Access::RuntimeRead, "POST", "/search", search);
}

}  // namespace atl::api
