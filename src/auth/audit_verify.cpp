#include "auth/audit_verify.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/audit_files.h"
#include "auth/audit_log.h"

namespace atl::auth {
namespace {

constexpr size_t kReadBytes = 256 << 10;

class Verifier {
 public:
  explicit Verifier(const AuditAnchors& anchors) : anchors_(anchors) {
    report_.head = anchors.start;
  }

  // Stops at the first fault.
  Result<void> read_file(const std::string& name, int fd) {
    file_ = name;
    line_ = 0;
    report_.files++;
    std::string rest, block(kReadBytes, '\0');
    while (!report_.fault) {
      ssize_t size = read(fd, block.data(), block.size());
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) return fail_errno("read", name);
      if (size == 0) break;
      rest.append(block, 0, static_cast<size_t>(size));
      rest.erase(0, read_lines(rest));
      if (rest.size() >= kMaxAuditLineBytes) fault("is too long to be an entry");
    }
    if (rest.empty() || report_.fault) return {};
    line_++;
    fault("is cut off");
    return {};
  }

  AuditReport finish() && {
    const auto& noted = anchors_.head;
    if (!report_.fault && noted && noted->seq > report_.head.seq) {
      fault(fmt::format("is the end, but entry {} was noted: the end of the log is missing",
                        noted->seq));
    }
    return std::move(report_);
  }
  bool faulty() const { return report_.fault.has_value(); }

 private:
  // Returns how much of `text` it has dealt with.
  size_t read_lines(std::string_view text) {
    size_t begin = 0;
    for (size_t end; !report_.fault && (end = text.find('\n', begin)) != text.npos;) {
      line_++;
      check(text.substr(begin, end - begin));
      begin = end + 1;
    }
    return begin;
  }

  void check(std::string_view line) {
    auto link = parse_audit_line(line);
    if (!link) return fault(link.error().message());
    uint64_t expected = report_.head.seq + 1;
    if (link->head.seq != expected) {
      return fault(fmt::format("has number {} where {} should follow", link->head.seq, expected));
    }
    if (link->prev != report_.head.hash) {
      return fault("does not follow from the entry before it");
    }
    const auto& noted = anchors_.head;
    if (noted && noted->seq == link->head.seq && noted->hash != link->head.hash) {
      return fault("is not the entry that was noted: the log was rewritten");
    }
    report_.head = std::move(link->head);
    report_.entries++;
  }

  void fault(std::string reason) { report_.fault = {file_, line_, std::move(reason)}; }

  AuditAnchors anchors_;
  AuditReport report_;
  std::string file_;
  uint64_t line_ = 0;
};

bool is_same_file(int a, int b) {
  struct stat first {
  }, second{};
  return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

}  // namespace

Result<AuditReport> verify_audit_log(const std::string& path, const AuditAnchors& anchors) {
  UniqueFd dir(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir.valid()) return fail_errno("open", path);
  // The present file first: if it is rotated meanwhile it turns up in the list as well, whereas in
  // the other order its entries would seem to be missing.
  auto present = open_audit_file(dir.get(), kAuditFile, O_RDONLY);
  if (!present && present.error().sys_errno() != ENOENT) return fail(std::move(present).error());
  ATOLL_ASSIGN(auto names, rotated_audit_files(dir.get()));
  Verifier verifier(anchors);
  for (const std::string& name : names) {
    ATOLL_ASSIGN(UniqueFd file, open_audit_file(dir.get(), name, O_RDONLY));
    if (present && is_same_file(present->get(), file.get())) continue;
    ATOLL_TRY(verifier.read_file(name, file.get()));
    if (verifier.faulty()) break;
  }
  if (present && !verifier.faulty()) {
    ATOLL_TRY(verifier.read_file(std::string(kAuditFile), present->get()));
  }
  return std::move(verifier).finish();
}

}  // namespace atl::auth
