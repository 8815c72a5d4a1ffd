#include "base/random_id.h"

#include <stdlib.h>
#include <sys/random.h>

namespace atl {

std::string random_id(std::string_view prefix, int digits) {
  static constexpr char kHex[] = "0123456789abcdef";
  unsigned char bytes[32];
  if (digits > 32) digits = 32;
  // getrandom of up to 256 bytes is never short and fails only where the kernel has no entropy
  // source at all; there is no safe way on from that.
  if (getrandom(bytes, static_cast<size_t>(digits), 0) != digits) abort();
  std::string id(prefix);
  for (int i = 0; i < digits; i++) id.push_back(kHex[bytes[i] & 15]);
  return id;
}

bool is_valid_id(std::string_view id) {
  if (id.empty() || id.size() > 64 || id.front() == '-') return false;
  for (char c : id) {
    bool ok = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    if (!ok) return false;
  }
  return true;
}

}  // namespace atl
