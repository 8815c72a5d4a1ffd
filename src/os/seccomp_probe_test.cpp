// The attack probes (tests/attack/probes) in a bubblewrap jail that has our filters and nothing
// else of ours. Without the filters all of these fail there; tests/attack/control_expectations.txt
// holds that half.
#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <span>
#include <sstream>
#include <string>

#include "base/unique_fd.h"
#include "os/exec_filter.h"
#include "os/seccomp_filter.h"

namespace atl {
namespace {

constexpr const char* kProbes =
    "A13 A14 A15 A16 A22 A23 B01 B02 B03 B04 B05 B07 B10 B13 B14 B15 B16 B17 B18 B19 B20 B21 B22 "
    "B23 B24 B25 B26 B27 B29 B33 C02";

// bubblewrap reads each filter as raw bytes from a descriptor that it inherits.
UniqueFd to_inherited_file(std::span<const sock_filter> filter) {
  UniqueFd file(memfd_create("filter", 0));
  const size_t size = filter.size_bytes();
  EXPECT_EQ(write(file.get(), filter.data(), size), ssize_t(size));
  EXPECT_EQ(lseek(file.get(), 0, SEEK_SET), 0);
  return file;
}

std::string output_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  std::string output;
  char buffer[4096];
  while (size_t size = fread(buffer, 1, sizeof(buffer), pipe)) output.append(buffer, size);
  pclose(pipe);
  return output;
}

std::string jail(int main_fd, int exec_fd) {
  // Not as root of the host, in case a probe gets through.
  const std::string user =
      geteuid() == 0 ? "setpriv --reuid=65534 --regid=65534 --clear-groups " : "";
  return user + "bwrap --unshare-all --uid 0 --gid 0 --cap-drop ALL --die-with-parent" +
         " --ro-bind /usr /usr --ro-bind /etc /etc --symlink usr/bin /bin --symlink usr/lib /lib" +
         " --symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp --chdir /" +
         " --ro-bind " ATOLL_SOURCE_DIR "/tests/attack/probes /probes --setenv PATH /usr/bin:/bin" +
         " --add-seccomp-fd " + std::to_string(main_fd) +  //
         " --add-seccomp-fd " + std::to_string(exec_fd) + " ";
}

#if defined(__x86_64__)
TEST(SeccompProbes, PassInAJailThatHasOnlyTheFilters) {
  if (system("command -v bwrap setpriv >/dev/null") != 0) GTEST_SKIP() << "no bubblewrap here";
  const UniqueFd main_filter = to_inherited_file(*build_main_filter());
  const UniqueFd exec_filter = to_inherited_file(os::kExecFilter);
  std::istringstream ids(kProbes);
  std::string expected;
  for (std::string id; ids >> id;) expected += "PASS " + id + "\n";
  const std::string command = jail(main_filter.get(), exec_filter.get());
  EXPECT_EQ(output_of(command + "bash /probes/probes.sh " + kProbes), expected);
}
#endif

}  // namespace
}  // namespace atl
