#include "memory.h"

#include <cstdlib>
#include <fstream>

#include "host_processes.h"

namespace atl::bench {

KernelMemory kernel_memory() {
  KernelMemory memory;
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    size_t colon = line.find(':');
    if (colon == line.npos) continue;
    std::string name = line.substr(0, colon);
    double kib = std::strtod(line.c_str() + colon + 1, nullptr);
    if (name == "Slab") memory.slab_kib = kib;
    if (name == "SUnreclaim") memory.slab_unreclaimable_kib = kib;
    if (name == "PageTables") memory.page_tables_kib = kib;
    if (name == "KernelStack") memory.kernel_stack_kib = kib;
    if (name == "Percpu") memory.percpu_kib = kib;
  }
  return memory;
}

AgentMemory agent_memory(const std::string& cgroup) {
  AgentMemory memory;
  for (const HostProcess& process : our_processes(cgroup)) {
    double kib = private_kib(process.pid);
    if (process.in_sandbox) {
      memory.processes++;
      memory.private_kib += kib;
    } else {
      memory.server_kib += kib;
    }
  }
  return memory;
}

}  // namespace atl::bench
