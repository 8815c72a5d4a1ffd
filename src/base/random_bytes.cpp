#include "base/random_bytes.h"

#include <stdlib.h>
#include <sys/random.h>

namespace atl {

void random_bytes(void* out, size_t size) {
  // Up to 256 bytes are never short, nor interrupted once the generator is ready.
  if (getrandom(out, size, 0) != static_cast<ssize_t>(size)) abort();
}

}  // namespace atl
