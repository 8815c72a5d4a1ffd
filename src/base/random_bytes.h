#pragma once

#include <cstddef>

namespace atl {

// Fills `out` from the kernel's generator, and ends the process where there is none: no caller has
// a safe way on from that. Up to 256 bytes.
void random_bytes(void* out, size_t size);

}  // namespace atl
