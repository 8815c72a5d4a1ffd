#include "http/json.h"

#include <gtest/gtest.h>

namespace atl::http {
namespace {

struct Parsed {
  explicit Parsed(std::string_view text)
      : document(std::move(*JsonDocument::parse(text))), reader(**document.object()) {}
  JsonDocument document;
  JsonObjectReader reader;
};

template <class T>
void expect_refused(const Result<T>& result, std::string_view field) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(result.error().field(), field);
  EXPECT_NE(result.error().message().find(field), std::string::npos) << result.error().message();
}

TEST(JsonObjectReader, ReadsEveryKindOfField) {
  Parsed json(R"({"s":"x","b":true,"i":-3,"n":1.5,"m":{"k":"v"},"a":["p","q"],"o":{"z":1},
                  "l":[{"y":2}]})");
  EXPECT_EQ(*json.reader.require_string("s"), "x");
  EXPECT_EQ(*json.reader.require_bool("b"), true);
  EXPECT_EQ(*json.reader.require_integer("i", -5, 5), -3);
  EXPECT_EQ(*json.reader.require_number("n"), 1.5);
  EXPECT_EQ(json.reader.string_map("m")->at("k"), "v");
  EXPECT_EQ(*json.reader.string_array("a"), (std::vector<std::string>{"p", "q"}));
  auto nested = *json.reader.require_object("o");
  EXPECT_EQ(*nested.require_integer("z", 0, 9), 1);
  auto list = *json.reader.object_array("l");
  EXPECT_EQ(*list.at(0).require_integer("y", 0, 9), 2);
  EXPECT_TRUE(nested.finish());
  EXPECT_TRUE(json.reader.finish());
}

TEST(JsonObjectReader, AbsentAndNullOptionalsAreNone) {
  Parsed json(R"({"a":null})");
  EXPECT_FALSE(*json.reader.optional_string("a"));
  EXPECT_FALSE(*json.reader.optional_integer("b", 0, 1));
  EXPECT_TRUE(json.reader.string_array("c")->empty());
  EXPECT_FALSE(*json.reader.optional_object("d"));
  EXPECT_TRUE(json.reader.finish());
}

TEST(JsonObjectReader, FailuresNameTheField) {
  Parsed json(R"({"s":1,"i":"1","big":11,"f":1.0,"huge":18446744073709551615,"m":{"k":1},
                  "a":["x",2],"o":{"z":"bad"},"l":[{}, 3]})");
  expect_refused(json.reader.require_string("s"), "s");
  expect_refused(json.reader.require_string("absent"), "absent");
  expect_refused(json.reader.require_integer("i", 0, 10), "i");
  expect_refused(json.reader.require_integer("big", 0, 10), "big");
  expect_refused(json.reader.require_integer("f", 0, 10), "f");
  expect_refused(json.reader.require_integer("huge", 0, INT64_MAX), "huge");
  expect_refused(json.reader.string_map("m"), "m.k");
  expect_refused(json.reader.string_array("a"), "a[1]");
  expect_refused(json.reader.require_object("o")->require_bool("z"), "o.z");
  expect_refused(json.reader.object_array("l"), "l[1]");
}

TEST(JsonObjectReader, UnknownFieldsAreRefusedByName) {
  Parsed json(R"({"name":"x","colour":"red"})");
  EXPECT_TRUE(json.reader.require_string("name"));
  expect_refused(json.reader.finish(), "colour");
}

TEST(JsonDocument, DoubledKeysAreRefusedAtAnyDepth) {
  expect_refused(JsonDocument::parse(R"({"a":1,"b":2,"a":3})"), "a");
  expect_refused(JsonDocument::parse(R"({"o":[{"x":{"k":1,"\u006b":2}}]})"), "k");
  EXPECT_TRUE(JsonDocument::parse(R"({"a":{"k":1},"b":{"k":2}})"));
}

TEST(JsonDocument, MalformedTextIsRefused) {
  for (std::string_view bad :
       {"", "{", "{}x", "{'a':1}", "nul", "{\"a\":\"\xff\"}", "{} {}", "NaN"}) {
    auto document = JsonDocument::parse(bad);
    ASSERT_FALSE(document) << bad;
    EXPECT_EQ(document.error().code(), ErrorCode::InvalidArgument);
  }
  EXPECT_FALSE(JsonDocument::parse("[1]")->object());
}

TEST(JsonDocument, NestingStopsAtThirtyTwo) {
  EXPECT_TRUE(JsonDocument::parse(std::string(32, '[') + std::string(32, ']')));
  EXPECT_FALSE(JsonDocument::parse(std::string(33, '[') + std::string(33, ']')));
}

TEST(JsonDocument, ValuesAreCounted) {
  auto zeros = [](size_t count) {
    std::string text = "[0";
    for (size_t i = 1; i < count; i++) text += ",0";
    return text + "]";
  };
  EXPECT_TRUE(JsonDocument::parse(zeros(199'000)));
  EXPECT_FALSE(JsonDocument::parse(zeros(201'000)));
}

TEST(JsonDocument, SizeIsLimited) {
  auto document = JsonDocument::parse("[1,2,3]", 6);
  ASSERT_FALSE(document);
  EXPECT_EQ(document.error().code(), ErrorCode::TooLarge);
}

}  // namespace
}  // namespace atl::http
