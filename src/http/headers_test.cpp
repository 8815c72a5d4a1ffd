#include "http/headers.h"

#include <gtest/gtest.h>

namespace atl::http {
namespace {

TEST(Headers, NamesCompareWithoutCase) {
  Headers headers{{"Content-Type", "text/plain"}};
  EXPECT_EQ(headers.get("content-TYPE"), "text/plain");
  EXPECT_FALSE(headers.get("content-typ"));
}

TEST(Headers, SettingReplacesEveryFieldOfThatName) {
  Headers headers{{"A", "1"}, {"B", "2"}, {"a", "3"}};
  headers.set("A", "4");
  EXPECT_EQ(headers.count("a"), 1u);
  EXPECT_EQ(headers.get("A"), "4");
  EXPECT_EQ(headers.get("B"), "2");
}

TEST(Headers, TokensAreFoundInListsOverSeveralFields) {
  Headers headers{{"Connection", "keep-alive ,\tUpgrade"}, {"Connection", "x"}};
  EXPECT_TRUE(headers.has_token("connection", "upgrade"));
  EXPECT_TRUE(headers.has_token("connection", "X"));
  EXPECT_FALSE(headers.has_token("connection", "close"));
}

TEST(Headers, ValuesThatCouldEndTheLineAreNotFieldValues) {
  EXPECT_TRUE(is_field_value("a b\tc\xc3\xa9"));
  EXPECT_FALSE(is_field_value("a\r\nSet-Cookie: x"));
  EXPECT_FALSE(is_field_value(std::string_view("a\0b", 3)));
  EXPECT_FALSE(is_token("a b"));
  EXPECT_FALSE(is_token(""));
}

}  // namespace
}  // namespace atl::http
