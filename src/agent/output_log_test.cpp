#include "agent/output_log.h"

#include <gtest/gtest.h>

#include <cstring>

namespace atl::agent {
namespace {

void append(OutputLog& log, std::string_view bytes) {
  while (!bytes.empty()) {
    std::span<char> space = log.prepare();
    size_t size = std::min(space.size(), bytes.size());
    memcpy(space.data(), bytes.data(), size);
    log.commit(size);
    bytes.remove_prefix(size);
  }
}

std::string read_all(const OutputLog& log, uint64_t offset, uint64_t* lost = nullptr) {
  std::string out;
  for (;;) {
    OutputLog::View view = log.at(offset);
    if (lost != nullptr && view.offset > offset && !view.data.empty())
      *lost += view.offset - offset;
    if (view.data.empty()) return out;
    out.append(view.data.begin(), view.data.end());
    offset = view.offset + view.data.size();
  }
}

// Each byte tells its own offset modulo 251.
std::string pattern(uint64_t offset, size_t size) {
  std::string bytes(size, 0);
  for (size_t i = 0; i < size; i++) bytes[i] = static_cast<char>((offset + i) % 251);
  return bytes;
}

TEST(OutputLog, KeepsAShortOutputWhole) {
  OutputLog log;
  append(log, "hello ");
  append(log, "world");
  EXPECT_EQ(read_all(log, 0), "hello world");
  EXPECT_EQ(read_all(log, 6), "world");
  EXPECT_EQ(log.end(), 11u);
  EXPECT_EQ(log.lost(), 0u);
  EXPECT_TRUE(log.at(11).data.empty());
}

TEST(OutputLog, KeepsTheHeadAndTheTailOfALongOutputAndCountsTheRest) {
  OutputLog log;
  constexpr size_t kTotal = 20u << 20;
  for (size_t at = 0; at < kTotal; at += 1u << 16) append(log, pattern(at, 1u << 16));
  EXPECT_EQ(log.end(), kTotal);
  uint64_t skipped = 0;
  std::string kept = read_all(log, 0, &skipped);
  EXPECT_EQ(kept.size() + log.lost(), kTotal);
  EXPECT_EQ(skipped, log.lost());
  EXPECT_GE(kept.size(), OutputLog::kHeadBytes + OutputLog::kTailBytes - (1u << 17));
  EXPECT_LE(kept.size(), OutputLog::kHeadBytes + OutputLog::kTailBytes + (1u << 17));
  EXPECT_EQ(kept.substr(0, OutputLog::kHeadBytes), pattern(0, OutputLog::kHeadBytes));
  constexpr size_t kEnd = 1u << 20;
  EXPECT_EQ(kept.substr(kept.size() - kEnd), pattern(kTotal - kEnd, kEnd));
}

TEST(OutputLog, AReaderInTheGapIsTakenToTheTail) {
  OutputLog log;
  for (size_t at = 0; at < (20u << 20); at += 1u << 16) append(log, pattern(at, 1u << 16));
  uint64_t asked = 2u << 20;
  OutputLog::View view = log.at(asked);
  ASSERT_FALSE(view.data.empty());
  EXPECT_GT(view.offset, asked);
  EXPECT_EQ(view.data[0], static_cast<char>(view.offset % 251));
}

TEST(OutputLog, ManyLogsTogetherStayWithinTheBudget) {
  std::vector<std::unique_ptr<OutputLog>> logs;
  size_t kept = 0;
  for (int i = 0; i < 20; i++) {
    logs.push_back(std::make_unique<OutputLog>());
    for (size_t at = 0; at < (10u << 20); at += 1u << 16)
      append(*logs.back(), pattern(at, 1u << 16));
    kept += logs.back()->end() - logs.back()->lost();
  }
  EXPECT_LE(kept, OutputLog::kBudgetBytes + 20 * (OutputLog::kHeadBytes + (1u << 20)));
}

}  // namespace
}  // namespace atl::agent
