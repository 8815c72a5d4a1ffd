// The little of protobuf's encoding that CRIU's requests and images need.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::criu {

class ProtoWriter {
 public:
  void number(uint32_t field, uint64_t value);
  void flag(uint32_t field, bool value) { number(field, value ? 1 : 0); }
  void bytes(uint32_t field, std::string_view value);
  std::string take() { return std::move(out_); }

 private:
  void varint(uint64_t value);
  std::string out_;
};

struct ProtoField {
  uint32_t number = 0;
  uint64_t value = 0;      // of a number
  std::string_view bytes;  // of a text or a message
};

class ProtoReader {
 public:
  explicit ProtoReader(std::string_view in) : in_(in) {}
  // The next field; nothing at the end.
  Result<std::optional<ProtoField>> next();

 private:
  bool varint(uint64_t& value);
  bool fixed(size_t size, uint64_t& value);
  std::string_view in_;
};

}  // namespace atl::criu
