// Control groups in every hierarchy of the host, also in those that Atoll itself has no use for.
#pragma once

#include <cstddef>
#include <string>

namespace atl::bench {

// Of all groups, those whose path holds a name that begins like this.
size_t count_cgroups(const std::string& name);

// Removes the group of this name below each root, with all below it. What has a process stays.
void remove_cgroups(const std::string& name);

}  // namespace atl::bench
