#include "code/frames.h"

#include <gtest/gtest.h>

#include "code/language.h"
#include "code/launch.h"

namespace atl::code {
namespace {

using Kind = FrameReader::Item::Kind;

std::string piece(std::string_view payload, char flag = '.') {
  char head[8];
  snprintf(head, sizeof head, "%04zx%c", payload.size(), flag);
  return "\x1e"
         "abc" +
         std::string(head) + std::string(payload);
}

std::vector<FrameReader::Item> feed_all(std::string_view bytes, size_t step) {
  FrameReader reader("abc");
  std::vector<FrameReader::Item> all;
  for (size_t at = 0; at < bytes.size(); at += step) {
    auto items = reader.feed(bytes.substr(at, step));
    EXPECT_TRUE(items);
    for (auto& item : *items) {
      if (!all.empty() && item.kind == Kind::Text && all.back().kind == Kind::Text) {
        all.back().bytes += item.bytes;
      } else {
        all.push_back(std::move(item));
      }
    }
  }
  return all;
}

TEST(Frames, TextAndMessagesWhateverTheChunks) {
  std::string bytes = "one \x1e not a piece " + piece("{\"t\"", '+') + piece(":1}") +
                      "zwei \xc3\xa4 " + piece("{}") + "end";
  for (size_t step : {1u, 2u, 3u, 7u, 1000u}) {
    auto items = feed_all(bytes, step);
    ASSERT_EQ(items.size(), 5u) << step;
    EXPECT_EQ(items[0].bytes, "one \x1e not a piece ");
    EXPECT_EQ(items[1].kind, Kind::Message);
    EXPECT_EQ(items[1].bytes, "{\"t\":1}");
    EXPECT_EQ(items[2].bytes, "zwei \xc3\xa4 ");
    EXPECT_EQ(items[4].bytes, "end");
  }
}

TEST(Frames, TextDoesNotEndWithinACharacter) {
  FrameReader reader("abc");
  auto items = reader.feed("a\xe2\x82");
  ASSERT_TRUE(items);
  ASSERT_EQ(items->size(), 1u);
  EXPECT_EQ(items->front().bytes, "a");
  EXPECT_EQ(reader.rest(), "\xe2\x82");
}

TEST(Frames, DisturbedPiecesFail) {
  FrameReader reader("abc");
  EXPECT_FALSE(
      reader.feed("\x1e"
                  "abcnope."));
  FrameReader other("abc");
  EXPECT_FALSE(
      other.feed("\x1e"
                 "abc0000!"));
}

TEST(Languages, NamesAndContexts) {
  EXPECT_EQ(*parse_language("javascript"), Language::Node);
  EXPECT_EQ(parse_language("r").error().code(), ErrorCode::NotSupported);
  ContextId id{.language = Language::TypeScript, .session = "a.b-c"};
  EXPECT_EQ(*parse_context_id(id.text()), id);
  EXPECT_FALSE(parse_context_id("python-"));
  EXPECT_FALSE(parse_context_id("python-a b"));
  EXPECT_FALSE(parse_context_id("../python-a"));
  auto label = parse_label(label_of(id, "python-x"));
  ASSERT_TRUE(label);
  EXPECT_EQ(label->id, id);
  EXPECT_EQ(label->root, "python-x");
  EXPECT_FALSE(parse_label("sleep 1"));
}

TEST(Launch, BashStringsAreQuoted) { EXPECT_EQ(shell_quoted("a'b\\c\nd"), "$'a\\'b\\\\c\\nd'"); }

}  // namespace
}  // namespace atl::code
