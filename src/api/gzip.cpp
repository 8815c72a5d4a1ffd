#include "api/gzip.h"

namespace atl::api {

static constexpr int kGzip = 15 + 16;  // window bits, gzip framing

GzipWriter::GzipWriter() {
  // Level 1: a directory goes over a local socket or a LAN, where time is dearer than bytes.
  deflateInit2(&stream_, 1, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY);
}

std::string GzipWriter::run(std::string_view bytes, int flush) {
  std::string out;
  char buffer[64 << 10];
  stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream_.avail_in = static_cast<uInt>(bytes.size());
  do {
    stream_.next_out = reinterpret_cast<Bytef*>(buffer);
    stream_.avail_out = sizeof buffer;
    deflate(&stream_, flush);
    out.append(buffer, sizeof buffer - stream_.avail_out);
  } while (stream_.avail_out == 0);
  return out;
}

GzipReader::~GzipReader() {
  if (compressed_) inflateEnd(&stream_);
}

void GzipReader::start(std::string_view bytes) {
  if (started_ || bytes.empty()) return;
  started_ = true;
  // A tar archive starts with a file name, which is never the byte 0x1f.
  compressed_ = static_cast<unsigned char>(bytes[0]) == 0x1f;
  if (compressed_) inflateInit2(&stream_, kGzip);
}

Result<std::string_view> GzipReader::next(std::string_view& bytes, std::string& buffer,
                                          bool& more) {
  if (ended_) {  // bytes after the end of the gzip stream are nobody's
    more = false;
    return std::string_view();
  }
  stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream_.avail_in = static_cast<uInt>(bytes.size());
  stream_.next_out = reinterpret_cast<Bytef*>(buffer.data());
  stream_.avail_out = static_cast<uInt>(buffer.size());
  int code = inflate(&stream_, Z_NO_FLUSH);
  if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
    return fail(ErrorCode::InvalidArgument, "the gzip data is damaged");
  }
  ended_ = code == Z_STREAM_END;
  bytes.remove_prefix(bytes.size() - stream_.avail_in);
  more = !ended_ && (stream_.avail_out == 0 || !bytes.empty()) && code != Z_BUF_ERROR;
  return std::string_view(buffer.data(), buffer.size() - stream_.avail_out);
}

Result<void> GzipReader::finish() const {
  if (compressed_ && !ended_) return fail(ErrorCode::InvalidArgument, "the gzip data was cut off");
  return {};
}

}  // namespace atl::api
