#include "image/whiteouts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <optional>

#include "image/child_report.h"

namespace atl::image {
namespace {

constexpr std::string_view kPrefix = ".wh.";
constexpr std::string_view kOpaque = ".wh..wh..opq";
constexpr std::string_view kReserved = ".wh..wh.";

// A layer need not list the directories that its entries are in.
Result<void> make_parents(const std::string& path) {
  for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1)) {
    std::string parent = path.substr(0, slash);
    if (mkdir(parent.c_str(), 0755) != 0 && errno != EEXIST) return fail_errno("mkdir", parent);
  }
  return {};
}

Result<std::optional<mode_t>> kind_of(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) == 0) return info.st_mode & S_IFMT;
  if (errno == ENOENT) return std::nullopt;
  return fail_errno("lstat", path);
}

}  // namespace

Result<bool> Whiteouts::take(std::string_view path) {
  size_t slash = path.rfind('/');
  std::string_view directory = slash == path.npos ? "" : path.substr(0, slash);
  std::string_view name = slash == path.npos ? path : path.substr(slash + 1);
  if (!name.starts_with(kPrefix)) return false;
  if (name == kOpaque) {
    opaque_.emplace(directory.empty() ? "." : directory);
    return true;
  }
  if (name.starts_with(kReserved)) return true;  // other notes of the same origin
  std::string_view removed = name.substr(kPrefix.size());
  if (removed.empty() || removed == "." || removed == "..") {
    return fail(ErrorCode::InvalidArgument,
                "the layer has a whiteout of no name: " + std::string(path));
  }
  std::string whole(directory);
  if (!whole.empty()) whole.push_back('/');
  removed_.insert(whole.append(removed));
  return true;
}

Result<std::vector<std::string>> Whiteouts::apply() const {
  std::set<std::string> opaque = opaque_;
  for (const std::string& path : removed_) {
    ATOLL_TRY(make_parents(path));
    ATOLL_ASSIGN(std::optional<mode_t> present, kind_of(path));
    if (!present) {
      if (mknod(path.c_str(), S_IFCHR, makedev(0, 0)) != 0) return fail_errno("mknod", path);
    } else if (*present == S_IFDIR) {
      // Removed and made anew: nothing of the old one may show through.
      opaque.insert(path);
    }
  }
  size_t bytes = 0;
  for (const std::string& path : opaque) {
    ATOLL_TRY(make_parents(path + "/"));
    bytes += path.size() + sizeof(uint32_t);
  }
  if (bytes > kMaxReportBytes / 2) {
    return fail(ErrorCode::TooLarge, "the layer has too many opaque directories");
  }
  return std::vector<std::string>(opaque.begin(), opaque.end());
}

}  // namespace atl::image
