// Lines that match a regular expression (POSIX extended) in the files below a directory.
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <regex.h>
#include <string.h>
#include <sys/stat.h>

#include <memory>

#include "agent/file_ops.h"

namespace atl::agent {
namespace {

constexpr uint64_t kDefaultMatches = 1000;
constexpr off_t kMaxFileSize = 32 << 20;
constexpr size_t kMaxLine = 4096;
constexpr int kMaxDepth = 64;

struct DirCloser {
  void operator()(DIR* dir) const { closedir(dir); }
};

class Search {
 public:
  Search(FileChannel& channel, const wire::FileRequest& request, regex_t& expression)
      : channel_(channel),
        request_(request),
        expression_(expression),
        left_(request.limit == 0 ? kDefaultMatches : request.limit) {}

  Result<void> directory(UniqueFd fd, const std::string& path, int depth) {
    std::unique_ptr<DIR, DirCloser> dir(fdopendir(fd.get()));
    if (dir == nullptr) return {};
    (void)fd.release();
    while (dirent* item = readdir(dir.get())) {
      const char* name = item->d_name;
      if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, ".git") == 0) continue;
      if (left_ == 0) return {};
      ATOLL_TRY(entry(dirfd(dir.get()), name, path + "/" + name, depth));
    }
    return {};
  }

  Result<void> file(int fd, const std::string& path) {
    std::string text;
    char buffer[64 << 10];
    ssize_t size;
    while ((size = read(fd, buffer, sizeof buffer)) > 0)
      text.append(buffer, static_cast<size_t>(size));
    if (memchr(text.data(), 0, std::min<size_t>(text.size(), 8192)) != nullptr)
      return {};  // binary
    return lines(text, path);
  }
  bool truncated() const { return left_ == 0; }

 private:
  Result<void> entry(int dir, const char* name, const std::string& path, int depth) {
    UniqueFd fd(openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC));
    struct stat info {};
    if (!fd.valid() || fstat(fd.get(), &info) != 0) return {};
    if (S_ISDIR(info.st_mode)) {
      return depth < kMaxDepth ? directory(std::move(fd), path, depth + 1) : Result<void>();
    }
    if (!S_ISREG(info.st_mode) || info.st_size > kMaxFileSize) return {};
    if (!request_.target.empty() && fnmatch(request_.target.c_str(), name, 0) != 0) return {};
    return file(fd.get(), path);
  }

  Result<void> lines(const std::string& text, const std::string& path) {
    std::vector<std::string_view> all;
    std::string_view rest = text;
    while (!rest.empty()) {
      size_t newline = rest.find('\n');
      all.push_back(rest.substr(0, newline));
      if (newline == rest.npos) break;
      rest.remove_prefix(newline + 1);
    }
    for (size_t i = 0; i < all.size() && left_ > 0; i++) {
      std::string line(all[i].substr(0, kMaxLine));
      regmatch_t match{};
      if (regexec(&expression_, line.c_str(), 1, &match, 0) != 0) continue;
      left_--;
      ATOLL_TRY(send_match(all, i, line, match, path));
    }
    return {};
  }

  Result<void> send_match(const std::vector<std::string_view>& all, size_t index,
                          const std::string& line, const regmatch_t& match,
                          const std::string& path) {
    SearchMatch reply{.path = path,
                      .line = static_cast<uint32_t>(index + 1),
                      .column = static_cast<uint32_t>(match.rm_so + 1),
                      .text = line};
    size_t first = index > request_.context ? index - request_.context : 0;
    size_t last = std::min(all.size(), index + 1 + request_.context);
    for (size_t k = first; k < index; k++) reply.before.emplace_back(all[k].substr(0, kMaxLine));
    for (size_t k = index + 1; k < last; k++) reply.after.emplace_back(all[k].substr(0, kMaxLine));
    return channel_.send(wire::FileMatch{std::move(reply)});
  }

  FileChannel& channel_;
  const wire::FileRequest& request_;
  regex_t& expression_;
  uint64_t left_;
};

}  // namespace

Result<void> file_search(FileChannel& channel, const wire::FileRequest& request) {
  regex_t expression;
  int flags = REG_EXTENDED | (request.ignore_case ? REG_ICASE : 0);
  int error = regcomp(&expression, request.pattern.c_str(), flags);
  if (error != 0) {
    char text[128];
    regerror(error, &expression, text, sizeof text);
    return fail(Error(ErrorCode::InvalidArgument, std::string("bad pattern: ") + text)
                    .with_field("pattern"));
  }
  std::unique_ptr<regex_t, void (*)(regex_t*)> release(&expression, regfree);
  UniqueFd fd(open(request.path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("search", request.path);
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return fail_errno("search", request.path);
  Search search(channel, request, expression);
  if (S_ISDIR(info.st_mode)) {
    ATOLL_TRY(search.directory(std::move(fd), request.path, 0));
  } else if (S_ISREG(info.st_mode)) {
    ATOLL_TRY(search.file(fd.get(), request.path));
  }
  return channel.send(wire::FileEnd{.truncated = search.truncated()});
}

}  // namespace atl::agent
