// Gzip as a stream, for directory transfers.
#pragma once

#include <zlib.h>

#include <string>
#include <string_view>

#include "atoll/result.h"

namespace atl::api {

class GzipWriter {
 public:
  GzipWriter();
  ~GzipWriter() { deflateEnd(&stream_); }
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;
  // What is ready to be sent after these bytes; may be empty.
  std::string add(std::string_view bytes) { return run(bytes, Z_NO_FLUSH); }
  std::string finish() { return run({}, Z_FINISH); }

 private:
  std::string run(std::string_view bytes, int flush);
  z_stream stream_{};
};

// Passes plain data through and unpacks gzip; which of the two it is shows in the first bytes.
class GzipReader {
 public:
  GzipReader() = default;
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;
  // Calls `sink` with unpacked pieces of at most 256 KiB, so that a bomb costs no memory.
  template <class Sink>
  auto add(std::string_view bytes, Sink sink) -> decltype(sink(std::string_view())) {
    start(bytes);
    if (!compressed_) co_return co_await sink(bytes);
    std::string buffer(256u << 10, '\0');
    for (bool more = true; more;) {
      ATOLL_CO_ASSIGN(std::string_view piece, next(bytes, buffer, more));
      if (!piece.empty()) ATOLL_CO_TRY(co_await sink(piece));
    }
    co_return Result<void>();
  }
  // Fails where a gzip stream was cut off.
  Result<void> finish() const;

 private:
  void start(std::string_view bytes);
  Result<std::string_view> next(std::string_view& bytes, std::string& buffer, bool& more);

  z_stream stream_{};
  bool started_ = false;
  bool compressed_ = false;
  bool ended_ = false;
};

}  // namespace atl::api
