// Memory of the kernel, as /proc/meminfo has it, and of sandboxes' processes.
#pragma once

#include <cstddef>
#include <string>

namespace atl::bench {

struct KernelMemory {
  double slab_kib = 0;
  double slab_unreclaimable_kib = 0;  // of it
  double page_tables_kib = 0;
  double kernel_stack_kib = 0;
  double percpu_kib = 0;

  double total_kib() const { return slab_kib + page_tables_kib + kernel_stack_kib + percpu_kib; }
};
KernelMemory kernel_memory();

struct AgentMemory {
  size_t processes = 0;    // in sandboxes
  double private_kib = 0;  // of all of them
  double server_kib = 0;   // private, of everything else of ours
};
// Walks /proc, which itself fills the slab: take kernel_memory() first.
AgentMemory agent_memory(const std::string& cgroup);

}  // namespace atl::bench
