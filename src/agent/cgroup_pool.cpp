#include "agent/cgroup_pool.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

namespace atl::agent {

bool ExecCgroup::open() {
  if (events_.valid()) return true;
  dir_.reset(openat(root_.get(), name_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  events_.reset(openat(dir_.get(), "cgroup.events", O_RDONLY | O_CLOEXEC));
  return events_.valid();
}

void ExecCgroup::close() {
  dir_.reset();
  events_.reset();
}

bool ExecCgroup::populated() {
  if (!open()) return false;
  char text[128];
  ssize_t size = pread(events_.get(), text, sizeof text - 1, 0);
  if (size <= 0) return false;
  text[size] = 0;
  return strstr(text, "populated 1") != nullptr;
}

void ExecCgroup::kill() {
  killed_ = true;
  if (!open()) return;
  UniqueFd file(openat(dir_.get(), "cgroup.kill", O_WRONLY | O_CLOEXEC));
  if (file.valid()) {
    [[maybe_unused]] ssize_t ignored = write(file.get(), "1", 1);
  }
}

std::unique_ptr<ExecCgroup> CgroupPool::create() {
  char name[16];
  snprintf(name, sizeof name, "e%d", created_);
  // EEXIST: a directory that an earlier life of this sandbox left; it is ours to use.
  if (mkdirat(root_.get(), name, 0755) != 0 && errno != EEXIST) return nullptr;
  created_++;
  auto group = std::make_unique<ExecCgroup>(root_, name);
  return group->open() ? std::move(group) : nullptr;
}

void CgroupPool::close_all() {
  for (auto* list : {&empty_, &crowded_}) {
    for (auto& group : *list) group->close();
  }
}

std::unique_ptr<ExecCgroup> CgroupPool::acquire() {
  if (!root_.valid()) return nullptr;
  if (!spent_.empty()) remove_spent();
  if (!empty_.empty()) {
    auto group = std::move(empty_.back());
    empty_.pop_back();
    return group;
  }
  for (size_t i = 0; i < crowded_.size(); i++) {
    if (crowded_[i]->populated()) continue;
    auto group = std::move(crowded_[i]);
    crowded_.erase(crowded_.begin() + static_cast<ptrdiff_t>(i));
    return group;
  }
  return create();
}

void CgroupPool::release(std::unique_ptr<ExecCgroup> group) {
  if (group == nullptr) return;
  if (group->killed()) {
    spent_.push_back(group->name());
  } else {
    (group->populated() ? crowded_ : empty_).push_back(std::move(group));
  }
}

void CgroupPool::release_empty(std::unique_ptr<ExecCgroup> group) {
  if (group->killed()) {
    release(std::move(group));
  } else {
    empty_.push_back(std::move(group));
  }
}

void CgroupPool::stock() {
  if (created_ != 0) return;
  if (auto first = acquire()) release_empty(std::move(first));
}

void CgroupPool::remove_spent() {
  // The last of its processes may still be on its way out; then it goes the next time.
  std::erase_if(spent_, [this](const std::string& name) {
    return unlinkat(root_.get(), name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT;
  });
}

}  // namespace atl::agent
