#include "agent/tar_format.h"

#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <charconv>

namespace atl::agent {
namespace {

struct Field {
  size_t offset;
  size_t size;
};
constexpr Field kName{0, 100}, kMode{100, 8}, kUid{108, 8}, kGid{116, 8}, kSize{124, 12},
    kMtime{136, 12}, kChecksum{148, 8}, kLink{157, 100}, kPrefix{345, 155};
constexpr size_t kType = 156;

std::string text_at(const char* block, Field field) {
  return {block + field.offset, strnlen(block + field.offset, field.size)};
}

// Octal digits, or GNU's big-endian binary with the top bit set.
std::optional<uint64_t> number_at(const char* block, Field field) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(block + field.offset);
  uint64_t value = 0;
  if (bytes[0] & 0x80) {
    for (size_t i = 1; i < field.size; i++) {
      if (value >> 56) return {};
      value = value << 8 | bytes[i];
    }
    return value;
  }
  for (size_t i = 0; i < field.size && bytes[i] != 0; i++) {
    if (bytes[i] == ' ') continue;
    if (bytes[i] < '0' || bytes[i] > '7') return {};
    value = value << 3 | static_cast<uint64_t>(bytes[i] - '0');
  }
  return value;
}

unsigned checksum(const char* block) {
  unsigned sum = 0;
  for (size_t i = 0; i < kTarBlock; i++) {
    bool inside = i >= kChecksum.offset && i < kChecksum.offset + kChecksum.size;
    sum += inside ? ' ' : static_cast<unsigned char>(block[i]);
  }
  return sum;
}

void put_text(std::string& block, Field field, std::string_view text) {
  block.replace(field.offset, std::min(text.size(), field.size), text.substr(0, field.size));
}

void put_octal(std::string& block, Field field, uint64_t value) {
  char digits[32];
  snprintf(digits, sizeof digits, "%0*llo", static_cast<int>(field.size - 1),
           static_cast<unsigned long long>(value));
  put_text(block, {field.offset, field.size - 1}, digits);
}

std::string header_block(const TarEntry& entry) {
  std::string block(kTarBlock, '\0');
  put_text(block, kName, entry.path);
  put_octal(block, kMode, entry.mode);
  put_octal(block, kUid, entry.uid);
  put_octal(block, kGid, entry.gid);
  put_octal(block, kSize, std::min<uint64_t>(entry.size, 077777777777));
  put_octal(block, kMtime, entry.mtime < 0 ? 0 : static_cast<uint64_t>(entry.mtime));
  block[kType] = entry.type;
  put_text(block, kLink, entry.link_target);
  block.replace(257, 8,
                std::string_view("ustar\0"
                                 "00",
                                 8));
  char sum[16];
  snprintf(sum, sizeof sum, "%06o", checksum(block.data()));
  block.replace(kChecksum.offset, 6, std::string_view(sum, 6));
  block[kChecksum.offset + 6] = '\0';
  block[kChecksum.offset + 7] = ' ';
  return block;
}

// "LENGTH key=value\n", where LENGTH counts itself.
std::string pax_record(std::string_view key, std::string_view value) {
  size_t body = key.size() + value.size() + 3;
  size_t length = body + std::to_string(body).size();
  length = body + std::to_string(length).size();
  return std::to_string(length) + " " + std::string(key) + "=" + std::string(value) + "\n";
}

}  // namespace

bool is_zero_block(const char* block) {
  return std::all_of(block, block + kTarBlock, [](char c) { return c == 0; });
}

std::optional<TarEntry> parse_tar_header(const char* block) {
  auto sum = number_at(block, kChecksum);
  if (!sum || *sum != checksum(block)) return {};
  auto mode = number_at(block, kMode), uid = number_at(block, kUid), gid = number_at(block, kGid);
  auto size = number_at(block, kSize), mtime = number_at(block, kMtime);
  if (!mode || !uid || !gid || !size || !mtime || *size > (1ull << 50)) return {};
  TarEntry entry;
  entry.path = text_at(block, kName);
  bool posix = memcmp(block + 257, "ustar\0", 6) == 0;
  std::string prefix = posix ? text_at(block, kPrefix) : std::string();
  if (!prefix.empty()) entry.path = prefix + "/" + entry.path;
  entry.link_target = text_at(block, kLink);
  entry.type = block[kType] == 0 ? '0' : block[kType];
  entry.mode = static_cast<uint32_t>(*mode & 07777);
  entry.uid = static_cast<uint32_t>(*uid);
  entry.gid = static_cast<uint32_t>(*gid);
  entry.size = *size;
  entry.mtime = static_cast<int64_t>(*mtime);
  return entry;
}

bool apply_pax(const std::string& records, TarEntry& entry) {
  std::string_view rest = records;
  while (!rest.empty() && rest.front() != 0) {
    size_t length = 0;
    auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
    size_t digits = static_cast<size_t>(end - rest.data());
    if (error != std::errc() || length <= digits + 1 || length > rest.size()) return false;
    std::string_view record = rest.substr(digits + 1, length - digits - 2);
    size_t equals = record.find('=');
    if (equals == record.npos) return false;
    std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path") entry.path = value;
    if (key == "linkpath") entry.link_target = value;
    if (key == "size") std::from_chars(value.data(), value.data() + value.size(), entry.size);
    if (key == "mtime") std::from_chars(value.data(), value.data() + value.size(), entry.mtime);
    rest.remove_prefix(length);
  }
  return true;
}

std::string make_tar_header(const TarEntry& entry) {
  std::string records;
  if (entry.path.size() > kName.size) records += pax_record("path", entry.path);
  if (entry.link_target.size() > kLink.size) records += pax_record("linkpath", entry.link_target);
  if (entry.size > 077777777777) records += pax_record("size", std::to_string(entry.size));
  if (records.empty()) return header_block(entry);
  TarEntry pax;
  pax.path = "./PaxHeaders/entry";
  pax.type = 'x';
  pax.size = records.size();
  std::string out = header_block(pax) + records;
  out.append(tar_padding(records.size()), '\0');
  return out + header_block(entry);
}

}  // namespace atl::agent
