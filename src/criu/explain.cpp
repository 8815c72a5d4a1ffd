#include <array>

#include "criu/images.h"
#include "os/file.h"

namespace atl::criu {
namespace {

struct Known {
  std::string_view sign;  // in the log
  std::string_view meaning;
};

// More telling ones first: one cause can leave several lines.
constexpr auto kKnown = std::to_array<Known>({
    {"Unseizable non-zombie", "a debugger or tracer (gdb, strace) is attached to a process"},
    {"nested user namespace", "a process has made a user namespace of its own"},
    {"nested pid namespace", "a process has made a process namespace of its own"},
    {"anon_inode:[io_uring]", "a process uses io_uring"},
    {"anon_inode:seccomp notify", "a process supervises others' system calls"},
    {"fsnotify: Can't dump that handle",
     "a process watches a file or directory that cannot be found again"},
    {"ghost file", "a deleted file that is still open is larger than 64 MiB"},
    {"Unix socket", "a process holds a socket that is connected to outside of the sandbox"},
    {"unix: ", "a process holds a Unix socket that cannot be kept"},
    {"in-flight", "a process has data in flight that cannot be kept"},
    {"packet: ", "a process holds a packet socket"},
    {"Can't lookup mount", "a process holds a file that is on no mount of the sandbox"},
    {"Can't dump file", "a process holds a descriptor of a kind that cannot be kept"},
    {"Cannot allocate memory",
     "the sandbox's memory limit is too small to bring its processes back"},
    {"No space left on device", "the disk is full"},
    {"Timeout reached", "it took too long"},
});

// "(00.012345) Error (criu/files.c:123): text": the part after the place, or empty.
std::string_view error_text(std::string_view line) {
  size_t at = line.find("Error (");
  if (at == line.npos) return {};
  size_t colon = line.find("): ", at);
  std::string_view text = colon == line.npos ? line.substr(at) : line.substr(colon + 3);
  // Said on every host that does not let the limit be raised, to no effect.
  if (text.find("RLIMIT_NOFILE") != text.npos) return {};
  return text;
}

}  // namespace

std::string explain(const std::string& log) {
  std::string first, errors;
  std::string_view rest = log;
  while (!rest.empty()) {
    size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view text = error_text(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (text.empty()) continue;
    if (first.empty()) first = text.substr(0, 300);
    errors.append(text).push_back('\n');
  }
  for (const Known& known : kKnown) {
    if (errors.find(known.sign) == errors.npos) continue;
    return std::string(known.meaning) + (first.empty() ? "" : " (criu: " + first + ")");
  }
  return first.empty() ? "criu gave no reason" : "criu: " + first;
}

std::string reason_in_log(int dir, const char* log) {
  return explain(os::read_file_at(dir, log).value_or(std::string()));
}

}  // namespace atl::criu
