// What a kernel writes on one of its streams: a program's text, and between it what the kernel
// says, in pieces that begin with a mark that only this request has:
//   0x1E mark, four hexadecimal digits of length, '+' (more follows) or '.', bytes
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "atoll/result.h"

namespace atl::code {

class FrameReader {
 public:
  // A message is never longer; one that would be means that somebody plays with the channel.
  static constexpr size_t kMaxMessage = 32u << 20;

  explicit FrameReader(std::string_view mark) : start_("\x1e" + std::string(mark)) {}

  struct Item {
    enum class Kind { Text, Message } kind = Kind::Text;
    std::string bytes;
  };
  // What is complete by now, in order. Text ends between characters, not within one.
  Result<std::vector<Item>> feed(std::string_view bytes);
  // What is held back because more was expected.
  std::string rest();

 private:
  enum class Step { More, Stop };
  Result<Step> take_piece(std::vector<Item>& items);
  void take_text(size_t size, std::vector<Item>& items);

  std::string start_;
  std::string buffer_;
  std::string message_;
};

// A random mark.
std::string make_mark();

}  // namespace atl::code
