#include "storage/tree_diff.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <set>

#include "base/text_diff.h"
#include "base/unique_fd.h"
#include "os/file.h"
#include "storage/layered_view.h"

namespace atl::storage {
namespace {

constexpr size_t kMaxTextFile = 256u << 10;
constexpr int kMaxDepth = 256;
constexpr size_t kBytesOfAChange = 32;

using Entry = std::optional<LayeredView::Entry>;

char type_of(const struct stat& info) {
  if (S_ISREG(info.st_mode)) return 'f';
  if (S_ISDIR(info.st_mode)) return 'd';
  return S_ISLNK(info.st_mode) ? 'l' : 'o';
}

bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool same_owner_and_mode(const struct stat& a, const struct stat& b) {
  return a.st_mode == b.st_mode && a.st_uid == b.st_uid && a.st_gid == b.st_gid;
}

// The times of a directory, and of a link, change with what is beside them.
bool same(const struct stat& a, const struct stat& b) {
  if (!same_owner_and_mode(a, b)) return false;
  if (S_ISDIR(a.st_mode)) return true;
  bool same_inode = a.st_ino == b.st_ino && same_time(a.st_ctim, b.st_ctim);
  return same_inode || (a.st_size == b.st_size && same_time(a.st_mtim, b.st_mtim));
}

std::set<std::string> names_in(int root, const std::string& path) {
  std::set<std::string> names;
  auto fd = os::open_beneath(root, path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY);
  if (!fd) return names;
  std::unique_ptr<DIR, int (*)(DIR*)> dir(fdopendir(fd->get()), closedir);
  if (dir == nullptr) return names;
  (void)fd->release();
  while (dirent* item = readdir(dir.get())) {
    std::string name = item->d_name;
    if (name != "." && name != "..") names.insert(std::move(name));
  }
  return names;
}

std::optional<std::string> read_text(const Entry& entry, const std::string& path) {
  if (!entry) return std::string();
  if (!S_ISREG(entry->info.st_mode)) return std::nullopt;
  if (static_cast<size_t>(entry->info.st_size) > kMaxTextFile) return std::nullopt;
  auto fd = os::open_beneath(entry->layer, path.c_str(), O_RDONLY | O_NONBLOCK);
  if (!fd) return std::nullopt;
  std::string text(kMaxTextFile, 0);
  ssize_t size = pread(fd->get(), text.data(), text.size(), 0);
  if (size < 0) return std::nullopt;
  text.resize(static_cast<size_t>(size));
  if (!is_text(text)) return std::nullopt;
  return text;
}

class Walk {
 public:
  explicit Walk(const DiffPlan& plan)
      : plan_(plan), before_(above(plan.before)), after_(above(plan.after)) {}

  Diff run() {
    visit("", 0);
    return std::move(diff_);
  }

 private:
  std::vector<int> above(int upper) const {
    std::vector<int> layers{upper};
    layers.insert(layers.end(), plan_.layers.begin(), plan_.layers.end());
    return layers;
  }

  void visit(const std::string& dir, int depth) {
    std::set<std::string> names = names_in(plan_.before, dir);
    names.merge(names_in(plan_.after, dir));
    // A directory that was made anew hides what the layers have: all of that may be gone.
    for (int upper : {plan_.before, plan_.after}) {
      if (!dir.empty() && is_opaque(upper, dir.c_str())) add_layers_names(dir, names);
    }
    for (const std::string& name : names) {
      if (!diff_.complete) return;
      compare(dir.empty() ? name : dir + "/" + name, depth);
    }
  }

  void add_layers_names(const std::string& dir, std::set<std::string>& names) const {
    for (int layer : plan_.layers) names.merge(names_in(layer, dir));
  }

  void compare(const std::string& path, int depth) {
    Entry before = before_.find(path), after = after_.find(path);
    if (!before && !after) return;
    bool was_dir = before && S_ISDIR(before->info.st_mode);
    bool is_dir = after && S_ISDIR(after->info.st_mode);
    if (!before || !after || !same(before->info, after->info)) add(path, before, after);
    if ((is_dir || (was_dir && after)) && depth < kMaxDepth) visit(path, depth + 1);
  }

  void add(const std::string& path, const Entry& before, const Entry& after) {
    bytes_ += path.size() + kBytesOfAChange;
    if (bytes_ > plan_.max_bytes) {
      diff_.complete = false;
      return;
    }
    Change change;
    change.kind =
        !before ? ChangeKind::Added : (!after ? ChangeKind::Removed : ChangeKind::Changed);
    change.path = "/" + path;
    change.type = type_of(after ? after->info : before->info);
    if (before) change.size_before = static_cast<uint64_t>(before->info.st_size);
    if (after) change.size_after = static_cast<uint64_t>(after->info.st_size);
    if (change.type == 'f') change.text = text_of(path, before, after);
    diff_.changes.push_back(std::move(change));
  }

  std::string text_of(const std::string& path, const Entry& before, const Entry& after) {
    if (!plan_.with_texts) return {};
    auto old_text = read_text(before, path), new_text = read_text(after, path);
    if (!old_text || !new_text) return {};
    std::string text = unified_diff(*old_text, *new_text);
    // No more than half of the rest: the other changes shall be told of, too.
    if (text.size() > (plan_.max_bytes - bytes_) / 2) return {};
    bytes_ += text.size();
    return text;
  }

  const DiffPlan& plan_;
  LayeredView before_, after_;
  Diff diff_;
  size_t bytes_ = 0;
};

}  // namespace

Result<Diff> diff_trees(const DiffPlan& plan) {
  Diff diff = Walk(plan).run();
  std::sort(diff.changes.begin(), diff.changes.end(),
            [](const Change& a, const Change& b) { return a.path < b.path; });
  return diff;
}

}  // namespace atl::storage
