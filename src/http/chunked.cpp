#include "http/chunked.h"

#include <charconv>

namespace atl::http {
namespace {

constexpr int kMaxSizeDigits = 15;             // cannot overflow 64 bits
constexpr size_t kMaxIgnoredBytes = 8 * 1024;  // extensions and trailers of a whole body

bool is_control(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; }

}  // namespace

Result<size_t> ChunkedDecoder::feed(std::string_view input) {
  size_t used = 0;
  while (used < input.size() && state_ != State::Data && state_ != State::Done) {
    if (!step(input[used])) return fail(ErrorCode::InvalidArgument, "malformed chunked body");
    used++;
  }
  return used;
}

void ChunkedDecoder::consume_data(uint64_t bytes) {
  data_left_ -= bytes;
  if (data_left_ == 0) state_ = State::DataCr;
}

bool ChunkedDecoder::step(char c) {
  switch (state_) {
    case State::Size:
      return take_size(c);
    case State::Extension:
      return take_ignored(c, State::SizeLf);
    case State::SizeLf:
      end_size_line();
      return c == '\n';
    case State::DataCr:
      state_ = State::DataLf;
      return c == '\r';
    case State::DataLf:
      state_ = State::Size;
      return c == '\n';
    case State::TrailerStart:
      if (c == '\r') {
        state_ = State::EndLf;
        return true;
      }
      state_ = State::Trailer;
      // A line that starts with a blank is obs-fold.
      return c != ' ' && c != '\t' && take_ignored(c, State::TrailerLf);
    case State::Trailer:
      return take_ignored(c, State::TrailerLf);
    case State::TrailerLf:
      state_ = State::TrailerStart;
      return c == '\n';
    case State::EndLf:
      state_ = State::Done;
      return c == '\n';
    case State::Data:
    case State::Done:
      return false;
  }
  return false;
}

bool ChunkedDecoder::take_size(char c) {
  int digit = -1;
  if (c >= '0' && c <= '9') digit = c - '0';
  if (c >= 'a' && c <= 'f') digit = c - 'a' + 10;
  if (c >= 'A' && c <= 'F') digit = c - 'A' + 10;
  if (digit >= 0) {
    data_left_ = data_left_ * 16 + static_cast<uint64_t>(digit);
    return ++digits_ <= kMaxSizeDigits;
  }
  if (digits_ == 0) return false;
  if (c == '\r') {
    state_ = State::SizeLf;
    return true;
  }
  state_ = State::Extension;
  return c == ';';
}

bool ChunkedDecoder::take_ignored(char c, State at_cr) {
  if (c == '\r') {
    state_ = at_cr;
    return true;
  }
  return !is_control(c) && ++ignored_bytes_ <= kMaxIgnoredBytes;
}

void ChunkedDecoder::end_size_line() {
  state_ = data_left_ == 0 ? State::TrailerStart : State::Data;
  digits_ = 0;
}

ChunkHeader::ChunkHeader(size_t size) {
  char* end = std::to_chars(text_.data(), text_.data() + 16, size, 16).ptr;
  *end++ = '\r';
  *end++ = '\n';
  length_ = static_cast<size_t>(end - text_.data());
}

}  // namespace atl::http
