#include "criu/protobuf.h"

#include <string.h>

namespace atl::criu {
namespace {

enum Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

}  // namespace

void ProtoWriter::varint(uint64_t value) {
  while (value >= 0x80) {
    out_.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out_.push_back(static_cast<char>(value));
}

void ProtoWriter::number(uint32_t field, uint64_t value) {
  varint(uint64_t{field} << 3 | kVarint);
  varint(value);
}

void ProtoWriter::bytes(uint32_t field, std::string_view value) {
  varint(uint64_t{field} << 3 | kBytes);
  varint(value.size());
  out_.append(value);
}

bool ProtoReader::varint(uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !in_.empty(); shift += 7) {
    auto byte = static_cast<uint8_t>(in_.front());
    in_.remove_prefix(1);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool ProtoReader::fixed(size_t size, uint64_t& value) {
  if (in_.size() < size) return false;
  value = 0;
  memcpy(&value, in_.data(), size);
  in_.remove_prefix(size);
  return true;
}

Result<std::optional<ProtoField>> ProtoReader::next() {
  if (in_.empty()) return std::nullopt;
  ProtoField field;
  uint64_t key = 0, size = 0;
  bool good = varint(key) && key >> 3 != 0 && key >> 3 <= UINT32_MAX;
  field.number = static_cast<uint32_t>(key >> 3);
  switch (key & 7) {
    case kVarint:
      good = good && varint(field.value);
      break;
    case kFixed64:
      good = good && fixed(8, field.value);
      break;
    case kFixed32:
      good = good && fixed(4, field.value);
      break;
    case kBytes:
      good = good && varint(size) && size <= in_.size();
      if (!good) break;
      field.bytes = in_.substr(0, size);
      in_.remove_prefix(size);
      break;
    default:
      good = false;
  }
  if (!good) return fail(ErrorCode::Internal, "a malformed message of CRIU's");
  return field;
}

}  // namespace atl::criu
