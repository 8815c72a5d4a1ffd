// Memory for secrets: not copied by accident, and wiped when it is given up.
#pragma once

#include <openssl/crypto.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "base/random_bytes.h"

namespace atl::auth {

// A 256-bit key: master, subkey, signing seed.
class SecretKey {
 public:
  static constexpr size_t kSize = 32;
  using Bytes = std::span<const uint8_t, kSize>;

  explicit SecretKey(Bytes bytes) { memcpy(bytes_.data(), bytes.data(), kSize); }
  SecretKey(SecretKey&& other) noexcept : SecretKey(other.bytes()) { other.wipe(); }
  SecretKey& operator=(SecretKey&& other) noexcept {
    if (this == &other) return *this;
    bytes_ = other.bytes_;
    other.wipe();
    return *this;
  }
  ~SecretKey() { wipe(); }

  static SecretKey random() {
    SecretKey key;
    random_bytes(key.bytes_.data(), kSize);
    return key;
  }
  SecretKey copy() const { return SecretKey(bytes()); }

  Bytes bytes() const { return bytes_; }

 private:
  SecretKey() = default;
  void wipe() { OPENSSL_cleanse(bytes_.data(), kSize); }

  std::array<uint8_t, kSize> bytes_{};
};

// Any number of bytes, fixed when made.
class SecretBytes {
 public:
  explicit SecretBytes(size_t size) : bytes_(std::make_unique<uint8_t[]>(size)), size_(size) {}
  explicit SecretBytes(std::string_view text) : SecretBytes(text.size()) {
    if (size_ > 0) memcpy(bytes_.get(), text.data(), size_);
  }
  SecretBytes(SecretBytes&& other) noexcept
      : bytes_(std::move(other.bytes_)), size_(std::exchange(other.size_, 0)) {}
  SecretBytes& operator=(SecretBytes&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~SecretBytes() { OPENSSL_cleanse(bytes_.get(), size_); }

  uint8_t* data() { return bytes_.get(); }
  const uint8_t* data() const { return bytes_.get(); }
  size_t size() const { return size_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.get()), size_}; }

 private:
  std::unique_ptr<uint8_t[]> bytes_;
  size_t size_;
};

}  // namespace atl::auth
