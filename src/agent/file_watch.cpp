// Changes below a directory, by inotify: one watch a directory, new directories watched as they
// appear.
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include <memory>

#include "agent/file_ops.h"

namespace atl::agent {
namespace {

constexpr size_t kMaxDirectories = 8192;
constexpr int kMaxDepth = 64;
constexpr uint32_t kMask = IN_CREATE | IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                           IN_ATTRIB | IN_DELETE_SELF | IN_ONLYDIR | IN_DONT_FOLLOW;

class Watch {
 public:
  Watch(FileChannel& channel, const wire::FileRequest& request)
      : channel_(channel), recursive_(request.recursive) {}

  Result<void> start(const std::string& root) {
    inotify_.reset(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (!inotify_.valid()) return fail_errno("inotify_init1");
    // The root itself may be reached through a link.
    int watch = inotify_add_watch(inotify_.get(), root.c_str(), kMask & ~IN_DONT_FOLLOW);
    if (watch < 0) return fail_errno("watch", root);
    remember(watch, root);
    return recursive_ ? add_below(root, 0) : Result<void>();
  }

  // Until the server hangs up.
  Result<void> run() {
    for (;;) {
      pollfd waits[] = {{inotify_.get(), POLLIN, 0}, {channel_.fd(), POLLIN | POLLRDHUP, 0}};
      if (poll(waits, 2, -1) < 0 && errno != EINTR) return fail_errno("poll");
      if (waits[1].revents != 0) return {};
      if (waits[0].revents != 0) ATOLL_TRY(read_events());
    }
  }

 private:
  void remember(int watch, const std::string& path) {
    if (paths_.size() <= static_cast<size_t>(watch)) paths_.resize(static_cast<size_t>(watch) + 1);
    paths_[static_cast<size_t>(watch)] = path;
  }

  Result<void> add(const std::string& path, int depth) {
    if (watched_ >= kMaxDirectories) {
      return fail(ErrorCode::ResourceExhausted, "more than 8192 directories; watch a smaller tree");
    }
    int watch = inotify_add_watch(inotify_.get(), path.c_str(), kMask);
    if (watch < 0) {
      if (errno == ENOSPC) return fail_errno("watch", path);
      return {};  // gone again, or not a directory
    }
    watched_++;
    remember(watch, path);
    return add_below(path, depth + 1);
  }

  Result<void> add_below(const std::string& path, int depth) {
    if (depth > kMaxDepth) return {};
    DIR* dir = opendir(path.c_str());
    if (dir == nullptr) return {};
    std::unique_ptr<DIR, int (*)(DIR*)> closer(dir, closedir);
    while (dirent* item = readdir(dir)) {
      if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0) continue;
      if (item->d_type == DT_DIR) ATOLL_TRY(add(path + "/" + item->d_name, depth));
    }
    return {};
  }

  static FileChange change_of(uint32_t mask) {
    if (mask & IN_CREATE) return FileChange::Created;
    if (mask & IN_CLOSE_WRITE) return FileChange::Modified;
    if (mask & (IN_DELETE | IN_DELETE_SELF)) return FileChange::Removed;
    if (mask & (IN_MOVED_FROM | IN_MOVED_TO)) return FileChange::Renamed;
    return FileChange::Attributes;
  }

  Result<void> read_events() {
    alignas(inotify_event) char buffer[16 << 10];
    ssize_t size = read(inotify_.get(), buffer, sizeof buffer);
    if (size <= 0) return {};
    for (char* at = buffer; at < buffer + size;) {
      auto* event = reinterpret_cast<inotify_event*>(at);
      at += sizeof(inotify_event) + event->len;
      ATOLL_TRY(handle(*event));
    }
    return {};
  }

  Result<void> handle(const inotify_event& event) {
    if (event.mask & IN_Q_OVERFLOW) {
      return channel_.send(wire::FileChanged{{.change = FileChange::Overflow}});
    }
    if (event.mask & IN_IGNORED) return {};
    if (event.wd < 0 || static_cast<size_t>(event.wd) >= paths_.size()) return {};
    if (event.len > 0 && is_unfinished(event.name)) {
      if ((event.mask & IN_MOVED_FROM) != 0) written_ = event.cookie;
      return {};
    }
    std::string path = paths_[static_cast<size_t>(event.wd)];
    if (event.len > 0) path += std::string("/") + event.name;
    bool is_dir = (event.mask & IN_ISDIR) != 0;
    // A file that takes its name when it is complete looks like one that was made and written.
    if ((event.mask & IN_MOVED_TO) != 0 && event.cookie == written_) {
      ATOLL_TRY(channel_.send(wire::FileChanged{{.change = FileChange::Created, .path = path}}));
      return channel_.send(wire::FileChanged{{.change = FileChange::Modified, .path = path}});
    }
    ATOLL_TRY(channel_.send(
        wire::FileChanged{{.change = change_of(event.mask), .path = path, .is_dir = is_dir}}));
    bool appeared = (event.mask & (IN_CREATE | IN_MOVED_TO)) != 0;
    return recursive_ && is_dir && appeared ? add(path, 0) : Result<void>();
  }

  FileChannel& channel_;
  bool recursive_;
  UniqueFd inotify_;
  std::vector<std::string> paths_;  // by watch descriptor
  size_t watched_ = 0;
  uint32_t written_ = 0;  // the cookie of the last unfinished file that was renamed
};

}  // namespace

Result<void> file_watch(FileChannel& channel, const wire::FileRequest& request) {
  Watch watch(channel, request);
  ATOLL_TRY(watch.start(request.path));
  ATOLL_TRY(channel.send(wire::Done{}));
  return watch.run();
}

}  // namespace atl::agent
