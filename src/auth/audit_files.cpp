#include "auth/audit_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>

#include "auth/audit_entry.h"

namespace atl::auth {
namespace {

constexpr std::string_view kRotatedPrefix = "audit-";
constexpr std::string_view kRotatedSuffix = ".jsonl";
constexpr size_t kSeqDigits = 12;

bool is_rotated(std::string_view name) {
  if (name.size() < kRotatedPrefix.size() + kSeqDigits + kRotatedSuffix.size()) return false;
  std::string_view digits = name.substr(
      kRotatedPrefix.size(), name.size() - kRotatedPrefix.size() - kRotatedSuffix.size());
  return name.starts_with(kRotatedPrefix) && name.ends_with(kRotatedSuffix) &&
         digits.find_first_not_of("0123456789") == digits.npos;
}

// The last `count` bytes before `end`.
Result<std::string> read_before(int fd, uint64_t end, size_t count) {
  std::string bytes(count, '\0');
  size_t have = 0;
  while (have < count) {
    ssize_t size =
        pread(fd, bytes.data() + have, count - have, static_cast<off_t>(end - count + have));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail_errno("read", "the audit log");
    if (size == 0) return fail(ErrorCode::InvalidState, "the audit log shrinks while it is read");
    have += static_cast<size_t>(size);
  }
  return bytes;
}

}  // namespace

std::string rotated_audit_name(uint64_t last_seq) {
  return fmt::format("{}{:0{}}{}", kRotatedPrefix, last_seq, kSeqDigits, kRotatedSuffix);
}

Result<std::vector<std::string>> rotated_audit_files(int dir) {
  // A description of its own, because reading moves the position.
  int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return fail_errno("open", "the audit directory");
  std::unique_ptr<DIR, decltype(&closedir)> stream(fdopendir(copy), closedir);
  if (stream == nullptr) {
    UniqueFd closer(copy);
    return fail_errno("read", "the audit directory");
  }
  std::vector<std::string> names;
  while (const dirent* entry = readdir(stream.get())) {
    if (is_rotated(entry->d_name)) names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return names;
}

Result<UniqueFd> open_audit_file(int dir, std::string_view name, int flags) {
  std::string path(name);
  UniqueFd fd(
      openat(dir, path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600));
  if (!fd.valid()) return fail_errno("open", name);
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return fail_errno("stat", name);
  if (!S_ISREG(info.st_mode)) {
    return fail(ErrorCode::InvalidState, path + " is not a regular file");
  }
  return fd;
}

Result<AuditTail> read_audit_tail(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return fail_errno("stat", "the audit log");
  auto size = static_cast<uint64_t>(info.st_size);
  // Room for a whole line and a torn one.
  size_t count = std::min<uint64_t>(size, 2 * kMaxAuditLineBytes);
  ATOLL_ASSIGN(std::string bytes, read_before(fd, size, count));
  size_t newline = bytes.rfind('\n');
  size_t before =
      newline == bytes.npos || newline == 0 ? bytes.npos : bytes.rfind('\n', newline - 1);
  if (before == bytes.npos && count < size) {
    return fail(ErrorCode::InvalidState, "the audit log's last line is too long to be an entry");
  }
  AuditTail tail;
  size_t begin = before == bytes.npos ? 0 : before + 1;
  size_t end = newline == bytes.npos ? 0 : newline + 1;
  if (end > 0) tail.last_line = bytes.substr(begin, end - 1 - begin);
  tail.torn = bytes.substr(end);
  tail.whole_size = size - tail.torn.size();
  return tail;
}

}  // namespace atl::auth
