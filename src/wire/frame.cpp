#include "wire/frame.h"

#include <algorithm>

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

Result<std::optional<FrameHeader>> FrameBuffer::peek() const {
  if (size_ - begin_ < kHeaderBytes) return std::nullopt;
  FrameHeader header = parse_header(data_.data() + begin_);
  if (header.size > kMaxPayload || header.reserved != 0) {
    return fail(ErrorCode::InvalidArgument, "malformed frame header");
  }
  return header;
}

std::string_view FrameBuffer::take(size_t most) {
  std::string_view bytes(data_.data() + begin_, std::min(most, size_ - begin_));
  begin_ += bytes.size();
  return bytes;
}

size_t FrameBuffer::wanted(size_t idle) const {
  auto header = peek();
  if (!header || !*header) return idle;
  size_t whole = kHeaderBytes + (*header)->size;
  size_t have = size_ - begin_;
  return whole > have ? whole - have + kHeaderBytes : idle;
}

Result<std::optional<Frame>> FrameBuffer::next() {
  ATOLL_ASSIGN(auto header, peek());
  if (!header || size_ - begin_ < kHeaderBytes + header->size) return std::nullopt;
  take(kHeaderBytes);
  return Frame{.type = header->type, .id = header->id, .payload = take(header->size)};
}

void FrameBuffer::shrink() {
  if (empty() && data_.capacity() > 4096) {
    data_ = std::string();
    begin_ = size_ = 0;
  }
}

}  // namespace atl::wire
