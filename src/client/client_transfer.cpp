#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>

#include "base/random_id.h"
#include "base/scope_exit.h"
#include "base/unique_fd.h"
#include "client/client_impl.h"
#include "client/decode.h"
#include "client/tar_pack.h"
#include "client/tar_unpack.h"
#include "http/target.h"

namespace atl {
namespace {

using client::file_target;

constexpr size_t kBlock = 256 * 1024;

std::optional<uint64_t> content_length(const http::ResponseStream& response) {
  auto text = response.headers().get("Content-Length");
  uint64_t length = 0;
  if (!text) return std::nullopt;
  auto [end, bad] = std::from_chars(text->data(), text->data() + text->size(), length);
  if (bad != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return length;
}

Result<uint64_t> pour(http::ResponseStream& response, const ByteSink& sink,
                      const ProgressSink& progress) {
  std::optional<uint64_t> total = content_length(response);
  std::vector<char> block(kBlock);
  uint64_t done = 0;
  while (true) {
    ATOLL_ASSIGN(size_t got, response.read(block));
    if (got == 0) return done;
    ATOLL_TRY(sink({block.data(), got}));
    done += got;
    if (progress) progress(done, total);
  }
}

std::string octal(uint32_t mode) {
  char text[16];
  snprintf(text, sizeof text, "%04o", mode & 07777);
  return text;
}

Result<void> write_fully(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    ssize_t size = ::write(fd, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail_errno("write", path);
    bytes.remove_prefix(static_cast<size_t>(size));
  }
  return {};
}

Result<size_t> read_some(int fd, std::span<char> into, const std::string& path) {
  ssize_t size = 0;
  do {
    size = ::read(fd, into.data(), into.size());
  } while (size < 0 && errno == EINTR);
  if (size < 0) return fail_errno("read", path);
  return static_cast<size_t>(size);
}

// A file of its own beside `path` that takes its place at commit(), or leaves no trace.
class Replacement {
 public:
  static Result<Replacement> create(const std::string& path) {
    size_t slash = path.rfind('/');
    std::string dir = slash == std::string::npos ? "" : path.substr(0, slash + 1);
    Replacement made(path, dir + random_id(".atoll-"));
    made.fd_.reset(::open(made.temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!made.fd_.valid()) return fail_errno("create", path);
    return made;
  }
  Replacement(Replacement&&) = default;
  Replacement& operator=(Replacement&&) = delete;
  ~Replacement() {
    if (fd_.valid()) ::unlink(temporary_.c_str());
  }

  int fd() const { return fd_.get(); }

  Result<void> commit(uint32_t mode, int64_t modified_ms) {
    ::fchmod(fd_.get(), mode & 0777);
    timespec time{modified_ms / 1000, (modified_ms % 1000) * 1'000'000};
    timespec times[] = {time, time};
    if (modified_ms != 0) ::futimens(fd_.get(), times);
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) return fail_errno("rename to", path_);
    fd_.reset();
    return {};
  }

 private:
  Replacement(std::string path, std::string temporary)
      : path_(std::move(path)), temporary_(std::move(temporary)) {}
  std::string path_;
  std::string temporary_;
  UniqueFd fd_;
};

}  // namespace

Result<uint64_t> Client::download(std::string_view sandbox, std::string_view path,
                                  const ByteSink& sink, const DownloadRequest& request) {
  http::Headers range;
  if (request.length && *request.length == 0) return uint64_t{0};
  if (request.offset != 0 || request.length) {
    std::string text = "bytes=" + std::to_string(request.offset) + "-";
    if (request.length) text += std::to_string(request.offset + *request.length - 1);
    range.set("Range", text);
  }
  ATOLL_ASSIGN(http::ResponseStream response,
               impl_->open(file_target(sandbox, "/fs/download", path), range));
  return pour(response, sink, request.progress);
}

Result<uint64_t> Client::backup(const ByteSink& sink) {
  ATOLL_ASSIGN(http::ResponseStream response,
               impl_->open("POST", "/v1/system/backup", impl_->headers));
  return pour(response, sink, nullptr);
}

Result<uint64_t> Client::export_template(std::string_view reference, const ByteSink& sink) {
  std::string target = "/v1/templates/" + http::percent_encode(reference) + "/archive";
  ATOLL_ASSIGN(http::ResponseStream response, impl_->open(target));
  return pour(response, sink, nullptr);
}

Result<uint64_t> Client::export_snapshot(std::string_view snapshot, const ByteSink& sink) {
  std::string target = "/v1/snapshots/" + http::percent_encode(snapshot) + "/archive";
  ATOLL_ASSIGN(http::ResponseStream response, impl_->open(target));
  return pour(response, sink, nullptr);
}

Result<SnapshotInfo> Client::import_snapshot(const ByteSource& source) {
  http::Headers headers = impl_->headers;
  headers.set("Content-Type", "application/octet-stream");
  auto response = impl_->patient.upload("POST", "/v1/snapshots/import", headers, {}, source);
  ATOLL_ASSIGN(std::string answer, Impl::finish(std::move(response)));
  ATOLL_ASSIGN(boost::json::value value, client::parse_answer(answer));
  return client::to_snapshot(value);
}

Result<std::string> Client::read_file(std::string_view sandbox, std::string_view path) {
  std::string bytes;
  ATOLL_TRY(download(sandbox, path, [&](std::string_view part) -> Result<void> {
    bytes.append(part);
    return {};
  }));
  return bytes;
}

Result<FileEntry> Client::upload(std::string_view sandbox, std::string_view path,
                                 const ByteSource& source, const UploadRequest& request) {
  std::string target = file_target(sandbox, "/fs/upload", path);
  if (request.mode != 0) target.append("?mode=").append(octal(request.mode));
  uint64_t done = 0;
  auto counted = [&](std::span<char> buffer) -> Result<size_t> {
    ATOLL_ASSIGN(size_t got, source(buffer));
    done += got;
    if (request.progress) request.progress(done, request.length);
    return got;
  };
  ATOLL_ASSIGN(std::string answer, Impl::finish(impl_->patient.upload("PUT", target, impl_->headers,
                                                                      request.length, counted)));
  ATOLL_ASSIGN(boost::json::value value, client::parse_answer(answer));
  return client::to_entry(client::unwrap(value));
}

Result<FileEntry> Client::write_file(std::string_view sandbox, std::string_view path,
                                     std::string_view bytes, uint32_t mode) {
  UploadRequest request;
  request.length = bytes.size();
  request.mode = mode;
  auto source = [&](std::span<char> buffer) -> Result<size_t> {
    size_t count = bytes.copy(buffer.data(), buffer.size());
    bytes.remove_prefix(count);
    return count;
  };
  return upload(sandbox, path, source, request);
}

Result<uint64_t> Client::download_file(std::string_view sandbox, std::string_view path,
                                       const std::string& local_path,
                                       const ProgressSink& progress) {
  ATOLL_ASSIGN(FileEntry entry, stat(sandbox, path));
  ATOLL_ASSIGN(Replacement file, Replacement::create(local_path));
  DownloadRequest request;
  request.progress = progress;
  auto sink = [&](std::string_view bytes) { return write_fully(file.fd(), bytes, local_path); };
  ATOLL_ASSIGN(uint64_t done, download(sandbox, path, sink, request));
  ATOLL_TRY(file.commit(entry.mode, entry.modified_ms));
  return done;
}

Result<uint64_t> Client::upload_file(std::string_view sandbox, const std::string& local_path,
                                     std::string_view path, const ProgressSink& progress) {
  UniqueFd fd(::open(local_path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("open", local_path);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return fail_errno("stat", local_path);
  if (S_ISDIR(info.st_mode)) return fail(Error::from_errno(EISDIR, "read", local_path));
  UploadRequest request;
  request.mode = info.st_mode & 0777;
  request.progress = progress;
  // What a growing file has by now is what is sent.
  if (S_ISREG(info.st_mode)) request.length = static_cast<uint64_t>(info.st_size);
  uint64_t left = request.length.value_or(UINT64_MAX);
  uint64_t done = 0;
  auto source = [&](std::span<char> buffer) -> Result<size_t> {
    size_t room = static_cast<size_t>(std::min<uint64_t>(left, buffer.size()));
    if (room == 0) return size_t{0};
    ATOLL_ASSIGN(size_t got, read_some(fd.get(), buffer.first(room), local_path));
    if (got == 0 && request.length) {
      return fail(ErrorCode::Conflict, local_path + " became shorter while it was read");
    }
    left -= got;
    done += got;
    return got;
  };
  ATOLL_TRY(upload(sandbox, path, source, request));
  return done;
}

Result<uint64_t> Client::download_tar(std::string_view sandbox, std::string_view path,
                                      const ByteSink& sink) {
  std::string target = file_target(sandbox, "/fs/download-dir", path) + "?format=tar";
  ATOLL_ASSIGN(http::ResponseStream response, impl_->open(target));
  return pour(response, sink, nullptr);
}

Result<void> Client::upload_tar(std::string_view sandbox, std::string_view path,
                                const ByteSource& source) {
  ATOLL_TRY(Impl::finish(impl_->patient.upload("PUT", file_target(sandbox, "/fs/upload-dir", path),
                                               impl_->headers, std::nullopt, source)));
  return {};
}

Result<TransferReport> Client::download_dir(std::string_view sandbox, std::string_view path,
                                            const std::string& local_path,
                                            const ProgressSink& progress) {
  std::string target = file_target(sandbox, "/fs/download-dir", path) + "?format=tar";
  ATOLL_ASSIGN(http::ResponseStream response, impl_->open(target));
  uint64_t done = 0;
  auto source = [&](std::span<char> buffer) -> Result<size_t> {
    ATOLL_ASSIGN(size_t got, response.read(buffer));
    done += got;
    if (progress) progress(done, std::nullopt);
    return got;
  };
  return client::unpack_tar(source, local_path);
}

Result<TransferReport> Client::upload_dir(std::string_view sandbox, const std::string& local_path,
                                          std::string_view path, const ProgressSink& progress) {
  ATOLL_ASSIGN(uint64_t total, client::tree_bytes(local_path));
  ATOLL_ASSIGN(http::RequestStream request,
               impl_->patient.start("PUT", file_target(sandbox, "/fs/upload-dir", path),
                                    impl_->headers, std::nullopt));
  uint64_t done = 0;
  bool refused = false;
  auto sink = [&](std::string_view bytes) -> Result<void> {
    auto written = request.write(bytes);
    // The server answers before the end when it refuses; that answer says why.
    refused = !written;
    if (!written) return written;
    done += bytes.size();
    if (progress) progress(std::min(done, total), total);
    return {};
  };
  Result<TransferReport> report = client::pack_tar(local_path, sink);
  if (!report && !refused) return report;
  ATOLL_TRY(Impl::finish(request.finish()));
  return report;
}

}  // namespace atl
