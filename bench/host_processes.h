// What /proc says about the processes that belong to our server.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

namespace atl::bench {

struct HostProcess {
  pid_t pid = 0;
  bool in_sandbox = false;  // in a PID namespace of its own
};

// Those in control groups of this name, and every descendant of this process.
std::vector<HostProcess> our_processes(const std::string& cgroup);

// Their namespaces, as "net:[4026531840]", except the ones this process is in.
std::set<std::string> namespaces_of(const std::vector<HostProcess>& processes);

// The namespaces of all processes on the host.
std::set<std::string> all_namespaces();

// Private_Clean and Private_Dirty.
double private_kib(pid_t pid);

}  // namespace atl::bench
