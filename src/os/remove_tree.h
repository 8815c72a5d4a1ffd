// Removes a directory with everything below it, following no link.
#pragma once

namespace atl::os {

// What cannot be removed stays.
void remove_tree(int parent, const char* name);

}  // namespace atl::os
