// Whole files and directories, streamed.
#include <charconv>

#include "api/file_path.h"
#include "api/gzip.h"
#include "api/multipart.h"
#include "api/routes.h"
#include "api/shapes.h"

namespace atl::api {
namespace {

constexpr size_t kChunk = 256u << 10;
constexpr size_t kMaxMultipart = 512u << 20;

struct Range {
  uint64_t first = 0;
  uint64_t last = UINT64_MAX;  // inclusive
};

// One range, "bytes=a-b" or "bytes=a-"; anything else is answered with the whole file, as RFC 9110
// allows.
std::optional<Range> parse_range(std::string_view header) {
  constexpr std::string_view kUnit = "bytes=";
  if (!header.starts_with(kUnit)) return {};
  header.remove_prefix(kUnit.size());
  Range range;
  auto [dash, error] = std::from_chars(header.data(), header.data() + header.size(), range.first);
  const char* end = header.data() + header.size();
  if (error != std::errc() || dash == end || *dash != '-') return {};
  if (dash + 1 == end) return range;
  auto [stop, second] = std::from_chars(dash + 1, end, range.last);
  if (second != std::errc() || stop != end || range.last < range.first) return {};
  return range;
}

Task<Result<void>> pump(FileReader& reader, http::ResponseWriter& writer) {
  for (;;) {
    ATOLL_CO_ASSIGN(std::string_view part, co_await reader.read());
    if (part.empty()) co_return co_await writer.finish();
    ATOLL_CO_TRY(co_await writer.write(part));
  }
}

Task<Result<void>> download(Context& context, http::Request& request,
                            http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(std::string path, path_of(request));
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ReadOptions options;
  auto header = request.headers.get("range");
  auto range = header ? parse_range(*header) : std::nullopt;
  if (range) {
    options.offset = range->first;
    if (range->last != UINT64_MAX) options.limit = range->last - range->first + 1;
  }
  ATOLL_CO_ASSIGN(auto reader, co_await target.session->read_file(std::move(path), options));
  uint64_t total = reader->entry().size;
  http::Headers headers{{"content-type", "application/octet-stream"}, {"accept-ranges", "bytes"}};
  int status = 200;
  if (range && reader->size()) {
    if (range->first >= total) {
      co_return fail(
          Error(ErrorCode::InvalidArgument, "the range starts past the end").with_field("range"));
    }
    status = 206;
    headers.add("content-range", "bytes " + std::to_string(range->first) + "-" +
                                     std::to_string(range->first + *reader->size() - 1) + "/" +
                                     std::to_string(total));
  }
  ATOLL_CO_TRY(co_await writer.start(status, std::move(headers), reader->size()));
  co_return co_await pump(*reader, writer);
}

Task<Result<void>> download_tree(Context& context, http::Request& request,
                                 http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(std::string path, path_of(request));
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  bool plain = request.query.get("format") == "tar";
  ATOLL_CO_ASSIGN(auto reader, co_await target.session->read_tree(std::move(path)));
  http::Headers headers{{"content-type", plain ? "application/x-tar" : "application/gzip"}};
  ATOLL_CO_TRY(co_await writer.start(200, std::move(headers)));
  if (plain) co_return co_await pump(*reader, writer);
  GzipWriter gzip;
  for (;;) {
    ATOLL_CO_ASSIGN(std::string_view part, co_await reader->read());
    std::string packed = part.empty() ? gzip.finish() : gzip.add(part);
    if (!packed.empty()) ATOLL_CO_TRY(co_await writer.write(packed));
    if (part.empty()) co_return co_await writer.finish();
  }
}

Task<Result<void>> upload(Context& context, http::Request& request, http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(std::string path, path_of(request));
  WriteOptions options;
  if (auto mode = request.query.get("mode")) {
    ATOLL_CO_ASSIGN(options.mode, parse_mode(*mode));
  }
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_ASSIGN(auto file, co_await target.session->write_file(std::move(path), options));
  std::string buffer(kChunk, '\0');
  for (;;) {
    ATOLL_CO_ASSIGN(size_t size, co_await request.body->read(buffer));
    if (size == 0) break;
    ATOLL_CO_TRY(co_await file->write({buffer.data(), size}));
  }
  ATOLL_CO_ASSIGN(FileEntry entry, co_await file->finish());
  co_return co_await writer.send_json(success(entry_json(entry)));
}

Task<Result<void>> upload_tree(Context& context, http::Request& request,
                               http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(std::string path, path_of(request));
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_ASSIGN(auto tree, co_await target.session->write_tree(std::move(path)));
  std::string buffer(kChunk, '\0');
  GzipReader gzip;
  auto sink = [&tree](std::string_view piece) { return tree->write(piece); };
  for (;;) {
    ATOLL_CO_ASSIGN(size_t size, co_await request.body->read(buffer));
    if (size == 0) break;
    ATOLL_CO_TRY(co_await gzip.add({buffer.data(), size}, sink));
  }
  ATOLL_CO_TRY(gzip.finish());
  ATOLL_CO_TRY(co_await tree->finish());
  co_return co_await writer.send_json(std::string(kSuccess));
}

struct Form {
  std::unique_ptr<std::string> body;  // owns what `data` points into, also when the form moves
  std::string path;
  std::string_view data;
};

Task<Result<Form>> read_form(http::Request& request) {
  Form form;
  ATOLL_CO_ASSIGN(std::string body, co_await request.body->read_all(kMaxMultipart));
  form.body = std::make_unique<std::string>(std::move(body));
  std::string_view type = request.headers.get("content-type").value_or("");
  ATOLL_CO_ASSIGN(auto parts, parse_multipart(type, *form.body));
  const Part* file = nullptr;
  for (const Part& part : parts) {
    if (part.name == "path") form.path = part.data;
    if (part.name == "file" || part.name == "archive") file = &part;
  }
  if (file == nullptr)
    co_return fail(Error(ErrorCode::InvalidArgument, "no file in the form").with_field("file"));
  if (form.path.empty()) form.path = file->file_name;
  if (form.path.empty())
    co_return fail(Error(ErrorCode::InvalidArgument, "no path in the form").with_field("path"));
  ATOLL_CO_TRY(check_path(form.path, "path"));
  form.data = file->data;
  co_return form;
}

Task<Result<void>> upload_form(Context& context, http::Request& request,
                               http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_ASSIGN(Form form, co_await read_form(request));
  ATOLL_CO_ASSIGN(auto file, co_await target.session->write_file(form.path, WriteOptions{}));
  ATOLL_CO_TRY(co_await file->write(form.data));
  ATOLL_CO_ASSIGN(FileEntry entry, co_await file->finish());
  co_return co_await writer.send_json(success(entry_json(entry)));
}

Task<Result<void>> upload_tree_form(Context& context, http::Request& request,
                                    http::ResponseWriter& writer) {
  ATOLL_CO_ASSIGN(Target target, co_await find_running(context, request));
  ATOLL_CO_ASSIGN(Form form, co_await read_form(request));
  ATOLL_CO_ASSIGN(auto tree, co_await target.session->write_tree(form.path));
  GzipReader gzip;
  auto sink = [&tree](std::string_view piece) { return tree->write(piece); };
  ATOLL_CO_TRY(co_await gzip.add(form.data, sink));
  ATOLL_CO_TRY(gzip.finish());
  ATOLL_CO_TRY(co_await tree->finish());
  co_return co_await writer.send_json(std::string(kSuccess));
}

}  // namespace

void add_transfer_routes(RuntimeRoutes& routes) {
  routes.add(Access::RuntimeRead, "GET", "/fs/download/{path...}", download);
  routes.add(Access::RuntimeWrite, "PUT", "/fs/upload/{path...}", upload);
  routes.add(Access::RuntimeWrite, "POST", "/fs/upload", upload_form);
  routes.add(Access::RuntimeRead, "GET", "/fs/download-dir/{path...}", download_tree);
  routes.add(Access::RuntimeWrite, "PUT", "/fs/upload-dir/{path...}", upload_tree);
  routes.add(Access::RuntimeWrite, "POST", "/fs/upload-dir", upload_tree_form);
}

}  // namespace atl::api
