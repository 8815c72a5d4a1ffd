// What a server has left on the host. Counted by whose it is (its control group's name, its
// folders, its descent from us) rather than as totals of the host, where others work too.
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "report.h"
#include "server_fixture.h"

namespace atl::bench {

struct LeakCount {
  size_t mounts = 0;
  size_t cgroups = 0;
  size_t namespaces = 0;
  size_t processes = 0;
  // By name: what was there before may go while we measure, and must not hide what is new.
  std::set<std::string> files;

  size_t total() const { return mounts + cgroups + namespaces + processes + files.size(); }
};

LeakCount count_leaks(const Workspace& workspace);

// Polls until nothing is left beyond `before`, for at most half a minute: the kernel takes
// namespaces apart behind everybody's back.
LeakCount settle_leaks(const Workspace& workspace, const LeakCount& before);

void report_leaks(const LeakCount& left, Report& report);

// Waits for deleted files to be swept, for at most half a minute. Entries still there.
size_t wait_for_sweeper(const Workspace& workspace);

// Of the whole host, to compare loosely: others may be at work.
struct HostTotals {
  size_t mounts = 0;
  size_t namespaces = 0;
};
HostTotals host_totals();

}  // namespace atl::bench
