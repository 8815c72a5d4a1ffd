#include "launcher/survivors.h"

#include <dirent.h>
#include <fcntl.h>

#include <charconv>
#include <memory>

#include "os/file.h"
#include "os/id_map.h"
#include "os/syscalls.h"

namespace atl::launcher {
namespace {

// "NSpid:\t4711\t1": the last number is the pid in the innermost namespace.
bool is_pid_one(const std::string& status) {
  size_t at = status.find("NSpid:");
  if (at == status.npos) return false;
  std::string_view line(status.data() + at, status.find('\n', at) - at);
  size_t last = line.find_last_of('\t');
  return line.substr(last + 1) == "1" && line.find('\t') != last;
}

std::optional<uint32_t> mapped_base(const std::string& uid_map) {
  std::string_view text = uid_map;
  auto skip = [&] { text.remove_prefix(std::min(text.find_first_not_of(' '), text.size())); };
  skip();
  text.remove_prefix(std::min(text.find(' '), text.size()));
  skip();
  uint32_t base = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), base);
  if (error != std::errc() || base % os::kIdBlockSize != 0 || base == 0) return {};
  return base;
}

}  // namespace

std::optional<Survivor> find_survivor(const std::vector<pid_t>& processes) {
  for (pid_t pid : processes) {
    UniqueFd pidfd = os::pidfd_open(pid);
    if (!pidfd.valid()) continue;
    std::string dir = "/proc/" + std::to_string(pid);
    auto status = os::read_file_at(AT_FDCWD, (dir + "/status").c_str());
    auto uid_map = os::read_file_at(AT_FDCWD, (dir + "/uid_map").c_str());
    if (!status || !uid_map || !is_pid_one(*status)) continue;
    auto base = mapped_base(*uid_map);
    if (!base) continue;
    return Survivor{.pid = pid, .id_base = *base, .pidfd = std::move(pidfd)};
  }
  return {};
}

std::vector<std::string> list_directories(int dir, Names which) {
  std::vector<std::string> names;
  UniqueFd copy(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::unique_ptr<DIR, int (*)(DIR*)> handle(fdopendir(copy.get()), closedir);
  if (handle == nullptr) return names;
  (void)copy.release();
  while (dirent* item = readdir(handle.get())) {
    std::string_view name = item->d_name;
    if (item->d_type != DT_DIR || name == "." || name == "..") continue;
    if (name.starts_with('.') == (which == Names::Hidden)) names.emplace_back(name);
  }
  return names;
}

}  // namespace atl::launcher
