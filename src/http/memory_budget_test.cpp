#include "http/memory_budget.h"

#include <gtest/gtest.h>

namespace atl::http {
namespace {

constexpr size_t kFree = MemoryShare::kFree;

TEST(MemoryBudget, SmallRequestsAreNotCounted) {
  MemoryBudget budget(100);
  MemoryShare share(budget);
  EXPECT_TRUE(share.take(kFree));
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_TRUE(share.take(40));
  EXPECT_EQ(budget.used(), 40u);
}

TEST(MemoryBudget, WhatDoesNotFitIsRefusedAndCostsNothing) {
  MemoryBudget budget(100);
  MemoryShare first(budget);
  MemoryShare second(budget);
  EXPECT_TRUE(first.take(kFree + 60));
  auto refused = second.take(kFree + 41);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::ResourceExhausted);
  EXPECT_EQ(budget.used(), 60u);
  EXPECT_TRUE(second.take(kFree + 40));
}

TEST(MemoryBudget, AShareIsGivenBackOnceWhereverItWasMoved) {
  MemoryBudget budget(100);
  {
    MemoryShare share(budget);
    EXPECT_TRUE(share.take(kFree + 60));
    MemoryShare moved(std::move(share));
    MemoryShare assigned;
    assigned = std::move(moved);
    EXPECT_EQ(budget.used(), 60u);
    EXPECT_TRUE(assigned.take(40));
  }
  EXPECT_EQ(budget.used(), 0u);
}

TEST(MemoryBudget, WithoutABudgetEverythingIsGranted) {
  MemoryShare share;
  EXPECT_TRUE(share.take(size_t{1} << 60));
}

}  // namespace
}  // namespace atl::http
