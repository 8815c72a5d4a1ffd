// Decompression in a ConfinedChild: compressed bytes go in at its socket, plain ones come out of
// it, so that whoever names a layer by its plain bytes need not believe what has parsed them.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/result.h"

namespace atl::image {

enum class Compression : uint8_t { None, Gzip, Xz, Zstd };

// By the first bytes.
Compression detect_compression(std::string_view beginning);

// The child's body: reads its socket to the end. `argument` is not used.
void prepare_inflation();
void run_inflation(int socket, const void* argument);

// How a child sends plain bytes, and ends them with how it went. False: nobody reads any more.
Result<bool> send_inflated(int socket, std::string_view bytes);
void finish_inflated(int socket, const Result<void>& outcome);

// The parent's side of the child's output.
class InflatedStream {
 public:
  explicit InflatedStream(int socket);

  // The next plain bytes, valid until the next call; empty at the end. The child's error where it
  // has failed.
  Result<std::string_view> next();

 private:
  int socket_;
  std::unique_ptr<char[]> buffer_;
};

}  // namespace atl::image
