// envd's /files: whole files, up and down.
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "api/e2b/call.h"
#include "api/e2b/routes.h"
#include "api/file_path.h"
#include "api/gzip.h"
#include "api/multipart.h"
#include "base/json_escape.h"

namespace atl::api::e2b {
namespace {

namespace json = boost::json;

constexpr size_t kChunk = 256u << 10;
constexpr size_t kMaxMultipart = 512u << 20;

Result<std::string> asked_path(const http::Request& request) {
  std::string path(request.query.get("path").value_or(""));
  ATOLL_TRY(check_path(path, "path"));
  return path;
}

bool wants_gzip(const http::Request& request) {
  auto accepted = request.headers.get("accept-encoding");
  // Clients that name others as well take it as it is: packing costs more than the way does.
  return accepted && *accepted == "gzip";
}

Task<Result<void>> download(Context& context, http::Request& request,
                            http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(std::string path, asked_path(request));
  ATOLL_CO_ASSIGN(Call call, co_await open_call(context, request));
  ReadOptions options;
  options.user = call.user;
  ATOLL_CO_ASSIGN(auto reader, co_await call.session().read_file(call.resolve(path), options));
  http::Headers headers{{"Content-Type", "application/octet-stream"}};
  bool packed = wants_gzip(request);
  if (packed) headers.add("Content-Encoding", "gzip");
  ATOLL_CO_TRY(
      co_await writer.start(200, std::move(headers), packed ? std::nullopt : reader->size()));
  GzipWriter gzip;
  for (;;) {
    ATOLL_CO_ASSIGN(std::string_view part, co_await reader->read());
    std::string bytes;
    if (packed) {
      bytes = part.empty() ? gzip.finish() : gzip.add(part);
    }
    std::string_view out = packed ? std::string_view(bytes) : part;
    if (!out.empty()) ATOLL_CO_TRY(co_await writer.write(out));
    if (part.empty()) co_return co_await writer.finish();
  }
}

json::object written_json(const FileEntry& entry) {
  size_t slash = entry.path.find_last_of('/');
  std::string name = slash == std::string::npos ? entry.path : entry.path.substr(slash + 1);
  return {{"name", to_valid_utf8(name)}, {"type", "file"}, {"path", to_valid_utf8(entry.path)}};
}

Task<Result<std::unique_ptr<FileWriter>>> open_file(Call& call, const std::string& path) {
  if (path.empty()) {
    co_return fail(Error(ErrorCode::InvalidArgument, "no path is given").with_field("path"));
  }
  WriteOptions options;
  options.user = call.user;
  co_return co_await call.session().write_file(call.resolve(path), options);
}

Task<Result<json::array>> upload_plain(Call& call, http::Request& request,
                                       const std::string& path) {
  ATOLL_CO_ASSIGN(auto file, co_await open_file(call, path));
  bool packed = request.headers.get("content-encoding") == "gzip";
  std::string buffer(kChunk, '\0');
  GzipReader gzip;
  auto sink = [&file](std::string_view piece) { return file->write(piece); };
  for (;;) {
    ATOLL_CO_ASSIGN(size_t size, co_await request.body->read(buffer));
    if (size == 0) break;
    std::string_view part(buffer.data(), size);
    // Only what says so is unpacked: a file may well be an archive.
    ATOLL_CO_TRY(packed ? co_await gzip.add(part, sink) : co_await file->write(part));
  }
  if (packed) ATOLL_CO_TRY(gzip.finish());
  ATOLL_CO_ASSIGN(FileEntry entry, co_await file->finish());
  co_return json::array{written_json(entry)};
}

// One file goes where ?path= says, several go where their names say.
Task<Result<json::array>> upload_form(Call& call, http::Request& request, const std::string& path) {
  ATOLL_CO_ASSIGN(std::string body, co_await request.body->read_all(kMaxMultipart));
  std::string_view type = request.headers.get("content-type").value_or("");
  ATOLL_CO_ASSIGN(auto parts, parse_multipart(type, body));
  json::array written;
  for (const Part& part : parts) {
    if (part.name != "file") continue;
    if (!path.empty() && !written.empty()) {
      co_return fail(Error(ErrorCode::InvalidArgument, "several files cannot have one path")
                         .with_field("path"));
    }
    ATOLL_CO_TRY(check_path(part.file_name, "file"));
    ATOLL_CO_ASSIGN(auto file, co_await open_file(call, path.empty() ? part.file_name : path));
    ATOLL_CO_TRY(co_await file->write(part.data));
    ATOLL_CO_ASSIGN(FileEntry entry, co_await file->finish());
    written.push_back(written_json(entry));
  }
  if (!written.empty()) co_return written;
  co_return fail(Error(ErrorCode::InvalidArgument, "no file in the form").with_field("file"));
}

Result<void> refuse_metadata(const http::Request& request) {
  constexpr std::string_view kPrefix = "x-metadata-";
  for (const http::Field& field : request.headers) {
    if (field.name.size() > kPrefix.size() &&
        http::equals_ignoring_case(std::string_view(field.name).substr(0, kPrefix.size()),
                                   kPrefix)) {
      return fail(Error(ErrorCode::NotSupported, "metadata of files is not supported")
                      .with_field(field.name));
    }
  }
  return {};
}

Task<Result<void>> upload(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(std::string path, asked_path(request));
  ATOLL_CO_TRY(refuse_metadata(request));
  ATOLL_CO_ASSIGN(Call call, co_await open_call(context, request));
  std::string_view type = request.headers.get("content-type").value_or("");
  auto written = type.starts_with("multipart/form-data")
                     ? co_await upload_form(call, request, path)
                     : co_await upload_plain(call, request, path);
  if (!written) co_return fail(std::move(written).error());
  co_return co_await writer.send_json(json::serialize(*written));
}

}  // namespace

void add_file_transfers(ControlRoutes& routes) {
  routes.add(Access::RuntimeRead, "GET", "/files", download);
  routes.add(Access::RuntimeWrite, "POST", "/files", upload);
  routes.add(Access::RuntimeWrite, "PUT", "/files", upload);  // as template builds send theirs
}

}  // namespace atl::api::e2b
