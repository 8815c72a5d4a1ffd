// The chunked transfer coding (RFC 9112 7.1), without input or output of its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace atl::http {

// Decodes everything around the chunk data and leaves the data itself to the caller, who can then
// read it straight to where it belongs. Strict: CRLF only, a bounded size of 15 hex digits,
// extensions and trailers bounded and dropped.
class ChunkedDecoder {
 public:
  // Consumes framing bytes from the front of `input`, stopping where chunk data begins or the body
  // ends. Returns how many.
  Result<size_t> feed(std::string_view input);

  // Data bytes of the present chunk that come next; 0 while framing is wanted.
  uint64_t data_left() const { return state_ == State::Data ? data_left_ : 0; }
  void consume_data(uint64_t bytes);
  bool done() const { return state_ == State::Done; }

 private:
  enum class State {
    Size,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    TrailerStart,
    Trailer,
    TrailerLf,
    EndLf,
    Done
  };
  bool step(char c);
  bool take_size(char c);
  bool take_ignored(char c, State at_cr);
  void end_size_line();

  State state_ = State::Size;
  uint64_t data_left_ = 0;
  int digits_ = 0;
  size_t ignored_bytes_ = 0;
};

// "1f4\r\n" in a buffer of its own, for gather writes.
class ChunkHeader {
 public:
  explicit ChunkHeader(size_t size);
  std::string_view text() const { return {text_.data(), length_}; }

 private:
  std::array<char, 20> text_{};
  size_t length_ = 0;
};

inline constexpr std::string_view kChunkEnd = "\r\n";
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace atl::http
