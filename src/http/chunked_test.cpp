#include "http/chunked.h"

#include <gtest/gtest.h>

namespace atl::http {
namespace {

// Decodes `input`, fed `step` bytes at a time; "!" when it is refused, "?" when it is incomplete.
std::string decode(std::string_view input, size_t step, std::string_view* rest = nullptr) {
  ChunkedDecoder decoder;
  std::string body;
  while (!decoder.done()) {
    if (input.empty()) return "?";
    std::string_view piece = input.substr(0, step);
    if (decoder.data_left() > 0) {
      size_t count = std::min<size_t>(piece.size(), decoder.data_left());
      body.append(piece.substr(0, count));
      decoder.consume_data(count);
      input.remove_prefix(count);
      continue;
    }
    auto used = decoder.feed(piece);
    if (!used) return "!";
    input.remove_prefix(*used);
  }
  if (rest != nullptr) *rest = input;
  return body;
}

TEST(Chunked, DecodesHoweverTheBytesAreCut) {
  constexpr std::string_view kInput =
      "5\r\nhello\r\n00A;x=\"y\"\r\n, it is me\r\n0\r\nT: v\r\n\r\n";
  for (size_t step = 1; step <= kInput.size(); step++) {
    EXPECT_EQ(decode(kInput, step), "hello, it is me") << step;
  }
}

TEST(Chunked, StopsAtTheEndOfTheBody) {
  std::string_view rest;
  EXPECT_EQ(decode("1\r\na\r\n0\r\n\r\nGET /", 100, &rest), "a");
  EXPECT_EQ(rest, "GET /");
}

TEST(Chunked, RefusesWhatIsNotStrictlyChunked) {
  const std::string long_extension = "1;" + std::string(9000, 'x') + "\r\na\r\n0\r\n\r\n";
  for (std::string_view bad :
       {std::string_view("\r\n"), std::string_view("x\r\n"), std::string_view("-1\r\n"),
        std::string_view("+1\r\na"), std::string_view("0x1\r\na"), std::string_view("1 \r\na"),
        std::string_view(" 1\r\na"), std::string_view("1\na\n0\n\n"),
        std::string_view("1\r\na\n0\r\n\r\n"), std::string_view("1\r\nab\r\n0\r\n\r\n"),
        std::string_view("1\rX"), std::string_view("0\r\nA: b\n\r\n"),
        std::string_view("0\r\n folded\r\n\r\n"), std::string_view("1;a\x01\r\na\r\n0\r\n\r\n"),
        std::string_view(long_extension)}) {
    EXPECT_EQ(decode(bad, 1), "!") << bad;
  }
}

TEST(Chunked, RefusesSizesThatWouldOverflow) {
  EXPECT_EQ(decode("10000000000000000\r\n", 1), "!");
  EXPECT_EQ(decode("ffffffffffffffff\r\n", 1), "!");
  EXPECT_EQ(decode("0000000000000001\r\na\r\n0\r\n\r\n", 1), "!");
}

TEST(Chunked, HeaderIsTheSizeInHex) {
  EXPECT_EQ(ChunkHeader(0x1f4).text(), "1f4\r\n");
  EXPECT_EQ(ChunkHeader(SIZE_MAX).text(), "ffffffffffffffff\r\n");
}

}  // namespace
}  // namespace atl::http
