// The tar header as POSIX (ustar) lays it out, with pax and GNU long names understood.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace atl::agent {

inline constexpr size_t kTarBlock = 512;

struct TarEntry {
  std::string path;
  std::string link_target;
  char type = '0';
  uint32_t mode = 0644;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t size = 0;
  int64_t mtime = 0;
};

// Nothing where the block's checksum or numbers are wrong.
std::optional<TarEntry> parse_tar_header(const char* block);
bool is_zero_block(const char* block);
// One header block, preceded by a pax header where the name, link or size does not fit.
std::string make_tar_header(const TarEntry& entry);
// "path", "linkpath", "size" and the like out of a pax header's records.
bool apply_pax(const std::string& records, TarEntry& entry);
inline uint64_t tar_padding(uint64_t size) { return (kTarBlock - size % kTarBlock) % kTarBlock; }

}  // namespace atl::agent
