#include "code/frames.h"

#include <charconv>

#include "base/random_id.h"

namespace atl::code {
namespace {

constexpr size_t kLengthDigits = 4;

// How many bytes at the end begin a character whose rest has not come yet.
size_t unfinished_character(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); back++) {
    auto c = static_cast<unsigned char>(text[text.size() - back]);
    if ((c & 0xC0) == 0x80) continue;
    size_t length = c >= 0xF0 ? 4 : (c >= 0xE0 ? 3 : (c >= 0xC0 ? 2 : 1));
    return length > back ? back : 0;
  }
  return 0;
}

}  // namespace

std::string make_mark() { return random_id("", 32); }

// Where a piece may begin that has not come as a whole.
static size_t possible_start(std::string_view text, std::string_view start) {
  size_t most = std::min(text.size(), start.size() - 1);
  for (size_t size = most; size > 0; size--) {
    if (text.substr(text.size() - size) == start.substr(0, size)) return text.size() - size;
  }
  return text.size();
}

void FrameReader::take_text(size_t size, std::vector<Item>& items) {
  if (size == 0) return;
  items.push_back({.kind = Item::Kind::Text, .bytes = buffer_.substr(0, size)});
  buffer_.erase(0, size);
}

Result<FrameReader::Step> FrameReader::take_piece(std::vector<Item>& items) {
  size_t head = start_.size() + kLengthDigits + 1;
  if (buffer_.size() < head) return Step::Stop;
  const char* digits = buffer_.data() + start_.size();
  size_t length = 0;
  auto [end, error] = std::from_chars(digits, digits + kLengthDigits, length, 16);
  char flag = *(digits + kLengthDigits);
  if (error != std::errc() || end != digits + kLengthDigits || (flag != '+' && flag != '.')) {
    return fail(ErrorCode::InvalidState, "the kernel's channel was disturbed");
  }
  if (buffer_.size() < head + length) return Step::Stop;
  if (message_.size() + length > kMaxMessage) {
    return fail(ErrorCode::TooLarge, "the kernel sent a message without an end");
  }
  message_.append(buffer_, head, length);
  buffer_.erase(0, head + length);
  if (flag == '.') {
    items.push_back({.kind = Item::Kind::Message, .bytes = std::move(message_)});
    message_.clear();
  }
  return Step::More;
}

Result<std::vector<FrameReader::Item>> FrameReader::feed(std::string_view bytes) {
  buffer_.append(bytes);
  std::vector<Item> items;
  for (;;) {
    size_t at = buffer_.find(start_);
    if (at == std::string::npos) break;
    take_text(at, items);
    ATOLL_ASSIGN(Step step, take_piece(items));
    if (step == Step::Stop) return items;
  }
  size_t size = possible_start(buffer_, start_);
  if (size == buffer_.size()) size -= unfinished_character(buffer_);
  take_text(size, items);
  return items;
}

std::string FrameReader::rest() { return std::exchange(buffer_, {}); }

}  // namespace atl::code
