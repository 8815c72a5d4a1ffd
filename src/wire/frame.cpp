#include "wire/frame.h"

namespace atl::wire {

FrameHeader parse_header(const char* bytes) {
  FrameHeader header;
  memcpy(&header.size, bytes, 4);
  memcpy(&header.type, bytes + 4, 2);
  memcpy(&header.reserved, bytes + 6, 2);
  memcpy(&header.id, bytes + 8, 4);
  return header;
}

void append_header(std::string& out, const FrameHeader& header) {
  Writer writer(out);
  writer(header.size, header.type, header.reserved, header.id);
}

char* FrameBuffer::prepare(size_t wanted) {
  if (begin_ == size_) begin_ = size_ = 0;
  if (data_.size() - size_ < wanted && begin_ > 0) {
    memmove(data_.data(), data_.data() + begin_, size_ - begin_);
    size_ -= begin_;
    begin_ = 0;
  }
  if (data_.size() - size_ < wanted) data_.resize(size_ + wanted);
  return data_.data() + size_;
}

Result<std::optional<Frame>> FrameBuffer::next() {
  size_t available = size_ - begin_;
  if (available < kHeaderBytes) return std::nullopt;
  FrameHeader header = parse_header(data_.data() + begin_);
  if (header.size > kMaxPayload || header.reserved != 0) {
    return fail(ErrorCode::InvalidArgument, "malformed frame header");
  }
  if (available < kHeaderBytes + header.size) return std::nullopt;
  std::string_view payload(data_.data() + begin_ + kHeaderBytes, header.size);
  begin_ += kHeaderBytes + header.size;
  return Frame{.type = header.type, .id = header.id, .payload = payload};
}

void FrameBuffer::shrink() {
  if (empty() && data_.capacity() > 4096) {
    data_ = std::string();
    begin_ = size_ = 0;
  }
}

}  // namespace atl::wire
