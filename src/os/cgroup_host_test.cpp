#include "os/cgroup_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace atl::os {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::string_view kHybrid =
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "39 31 0:36 / /sys/fs/cgroup/pids rw shared:1 - cgroup cgroup rw,pids\n"
    "40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

TEST(CgroupLayout, AHybridHostHasItsLimitsOnV1AndItsLifeOnV2) {
  CgroupLayout layout = parse_cgroup_layout(kHybrid, "hugetlb");
  EXPECT_EQ(layout.mode, CgroupMode::Hybrid);
  EXPECT_EQ(layout.unified, "/sys/fs/cgroup/unified");
  ASSERT_EQ(layout.legacy.size(), 3u);
  EXPECT_THAT(layout.legacy[0].controllers, ElementsAre("cpu", "cpuacct"));
  EXPECT_THAT(layout.missing, IsEmpty());
}

TEST(CgroupLayout, APureV2HostNeedsNothingElse) {
  CgroupLayout layout =
      parse_cgroup_layout("25 20 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n",
                          "cpuset cpu io memory pids");
  EXPECT_EQ(layout.mode, CgroupMode::Unified);
  EXPECT_THAT(layout.legacy, IsEmpty());
  EXPECT_THAT(layout.missing, IsEmpty());
}

TEST(CgroupLayout, AMissingControllerIsNamed) {
  CgroupLayout layout =
      parse_cgroup_layout("25 20 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "cpu pids");
  EXPECT_THAT(layout.missing, ElementsAre("memory"));
}

TEST(CgroupLayout, AHostWithoutV2IsLegacy) {
  CgroupLayout layout =
      parse_cgroup_layout("35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", "");
  EXPECT_EQ(layout.mode, CgroupMode::Legacy);
  EXPECT_THAT(layout.missing, ElementsAre("pids", "cpu"));
}

}  // namespace
}  // namespace atl::os
