#include "base/random_id.h"

#include "base/random_bytes.h"

namespace atl {

std::string random_id(std::string_view prefix, int digits) {
  static constexpr char kHex[] = "0123456789abcdef";
  unsigned char bytes[32];
  if (digits > 32) digits = 32;
  random_bytes(bytes, static_cast<size_t>(digits));
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
