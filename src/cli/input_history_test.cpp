#include "cli/input_history.h"

#include <gtest/gtest.h>

namespace atl::cli {
namespace {

TEST(InputHistory, SendsInOrderAndAgainFromWhereTheProcessIs) {
  InputHistory input;
  input.append("abcdef");
  EXPECT_EQ(input.unsent(4), "abcd");
  input.mark_sent(4);
  EXPECT_EQ(input.unsent(100), "ef");
  EXPECT_TRUE(input.rewind(2));
  EXPECT_EQ(input.unsent(100), "cdef");
  input.mark_sent(4);
  EXPECT_TRUE(input.all_sent());
  EXPECT_TRUE(input.rewind(6));
  EXPECT_TRUE(input.all_sent());
}

TEST(InputHistory, WhatWasNeverSentCannotHaveArrived) {
  InputHistory input;
  input.append("abc");
  input.mark_sent(1);
  EXPECT_FALSE(input.rewind(2));
}

TEST(InputHistory, KeepsABoundedPast) {
  InputHistory input;
  std::string block(1u << 20, 'x');
  constexpr uint64_t kBlocks = 50;
  for (uint64_t i = 0; i < kBlocks; i++) {
    block[0] = static_cast<char>(i);
    input.append(block);
    input.mark_sent(block.size());
  }
  EXPECT_FALSE(input.rewind(0));
  uint64_t late = (kBlocks - 16) << 20;
  ASSERT_TRUE(input.rewind(late));
  EXPECT_EQ(input.unsent(1)[0], static_cast<char>(kBlocks - 16));
}

}  // namespace
}  // namespace atl::cli
