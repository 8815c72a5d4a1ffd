#include "auth/audit_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/audit_files.h"

namespace atl::auth {
namespace {

constexpr int kNewFile = O_WRONLY | O_CREAT | O_EXCL;

Result<UniqueFd> open_locked(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return fail_errno("mkdir", path);
  UniqueFd dir(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!dir.valid()) return fail_errno("open", path);
  if (flock(dir.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail_errno("lock", path);
    return fail(ErrorCode::Conflict, "another process writes the audit log in " + path);
  }
  return dir;
}

// One write, tried again only where a signal came before it began.
ssize_t write_once(int fd, std::string_view bytes) {
  for (;;) {
    ssize_t size = write(fd, bytes.data(), bytes.size());
    if (size >= 0 || errno != EINTR) return size;
  }
}

// Durable before the log is cut, or a second crash could lose it.
Result<std::string> save_torn(int dir, std::string_view torn, int64_t now_ms) {
  for (int64_t time = now_ms;; time++) {
    std::string name = fmt::format("{}.torn-{}", kAuditFile, time);
    auto fd = open_audit_file(dir, name, kNewFile);
    if (!fd && fd.error().sys_errno() == EEXIST && time < now_ms + 1000) continue;
    if (!fd) return fail(std::move(fd).error());
    if (write_once(fd->get(), torn) != static_cast<ssize_t>(torn.size())) {
      return fail_errno("write", name);
    }
    if (fsync(fd->get()) != 0 || fsync(dir) != 0) return fail_errno("fsync", name);
    return name;
  }
}

// Where the chain stood when the newest rotated file was left.
Result<std::string> last_rotated_line(int dir) {
  ATOLL_ASSIGN(auto names, rotated_audit_files(dir));
  if (names.empty()) return std::string();
  ATOLL_ASSIGN(UniqueFd file, open_audit_file(dir, names.back(), O_RDONLY));
  ATOLL_ASSIGN(AuditTail tail, read_audit_tail(file.get()));
  if (tail.torn.empty() && !tail.last_line.empty()) return std::move(tail.last_line);
  return fail(ErrorCode::InvalidState, names.back() + " does not end with a whole entry");
}

}  // namespace

AuditLog::AuditLog(UniqueFd dir, std::string path, AuditOptions options)
    : dir_(std::move(dir)), path_(std::move(path)), options_(options) {}

Result<AuditLog> AuditLog::open(const std::string& dir, int64_t now_ms, AuditOptions options) {
  ATOLL_ASSIGN(UniqueFd locked, open_locked(dir));
  AuditLog log(std::move(locked), dir, options);
  auto resumed = log.open_file().and_then([&] { return log.resume(now_ms); });
  if (!resumed) return fail(std::move(resumed).error().context("audit log in " + dir));
  return log;
}

Result<void> AuditLog::open_file() {
  ATOLL_ASSIGN(UniqueFd file, open_audit_file(dir_.get(), kAuditFile, O_RDWR | O_APPEND | O_CREAT));
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return fail_errno("stat", kAuditFile);
  bool ours = info.st_uid == geteuid() || info.st_uid == 0;
  if (!ours || (info.st_mode & 022) != 0) {
    return fail(
        ErrorCode::InvalidState,
        fmt::format("others may write {}; see who did, then run: chown {} {}/{} && chmod 600 {}/{}",
                    kAuditFile, geteuid(), path_, kAuditFile, path_, kAuditFile));
  }
  size_ = static_cast<uint64_t>(info.st_size);
  file_ = std::move(file);
  return {};
}

Result<void> AuditLog::resume(int64_t now_ms) {
  ATOLL_ASSIGN(AuditTail tail, read_audit_tail(file_.get()));
  std::string last = std::move(tail.last_line);
  if (tail.whole_size == 0) {
    ATOLL_ASSIGN(last, last_rotated_line(dir_.get()));
  }
  if (!last.empty() || tail.whole_size > 0) {
    auto link = parse_audit_line(last);
    if (!link) {
      return fail(ErrorCode::InvalidState,
                  "the last entry " + link.error().message() +
                      "; look into it, then move the directory away to begin a new log");
    }
    head_ = std::move(link->head);
  }
  return tail.torn.empty() ? Result<void>() : note_torn(tail.torn, now_ms);
}

Result<void> AuditLog::note_torn(std::string_view torn, int64_t now_ms) {
  ATOLL_ASSIGN(std::string name, save_torn(dir_.get(), torn, now_ms));
  size_ -= torn.size();
  if (ftruncate(file_.get(), static_cast<off_t>(size_)) != 0) {
    return fail_errno("truncate", kAuditFile);
  }
  return append(
      {.at_ms = now_ms,
       .actor = "atoll",
       .tenant = "",
       .action = "audit.torn",
       .target = name,
       .outcome = "ok",
       .detail = fmt::format("{} bytes of an unfinished entry were set aside", torn.size())});
}

Result<void> AuditLog::append(const AuditEntry& entry) {
  if (!dir_.valid()) {
    return fail(ErrorCode::InvalidState, "the audit log has a torn entry; restart the server");
  }
  if (!file_.valid()) ATOLL_TRY(open_file());
  AuditHead next = head_;
  std::string line = encode_audit_line(entry, next);
  if (size_ > 0 && size_ + line.size() > options_.max_file_bytes) ATOLL_TRY(rotate());
  ATOLL_TRY(write_line(line));
  head_ = std::move(next);
  return {};
}

Result<void> AuditLog::rotate() {
  std::string name = rotated_audit_name(head_.seq);
  if (fsync(file_.get()) != 0) return fail_errno("fsync", kAuditFile);
  int dir = dir_.get();
  if (renameat2(dir, kAuditFile.data(), dir, name.c_str(), RENAME_NOREPLACE) != 0) {
    return fail_errno("rename audit log to", name);
  }
  file_.reset();
  if (fsync(dir) != 0) return fail_errno("fsync", path_);
  return open_file();
}

Result<void> AuditLog::write_line(std::string_view line) {
  ssize_t written = write_once(file_.get(), line);
  if (written == static_cast<ssize_t>(line.size())) {
    size_ += line.size();
    return {};
  }
  // A short write means that the disk is full: asking again would only tell so.
  int err = written < 0 ? errno : ENOSPC;
  if (written > 0 && ftruncate(file_.get(), static_cast<off_t>(size_)) != 0) {
    // What is there now must not be written behind; opening anew will set it aside.
    dir_.reset();
    file_.reset();
  }
  return fail(Error::from_errno(err, "write", path_));
}

}  // namespace atl::auth
