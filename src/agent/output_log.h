// What a process has printed on one stream: the first megabyte and the last eight, with what fell
// out between them counted. Bytes are read from the pipe straight into the blocks kept here and
// sent from there, so keeping them costs no copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace atl::agent {

class OutputLog {
 public:
  static constexpr size_t kHeadBytes = 1u << 20;
  static constexpr size_t kTailBytes = 8u << 20;
  // All logs of the sandbox together; beyond it each keeps only a short tail.
  static constexpr size_t kBudgetBytes = 64u << 20;
  static constexpr size_t kShortTailBytes = 256u << 10;

  struct View {
    uint64_t offset = 0;  // of data; greater than asked where bytes were lost
    std::span<const char> data;
  };

  OutputLog() = default;
  OutputLog(const OutputLog&) = delete;
  OutputLog& operator=(const OutputLog&) = delete;
  ~OutputLog() { clear(); }

  std::span<char> prepare();
  void commit(size_t count);

  // A contiguous run of kept bytes at `offset` or after; empty at the end.
  View at(uint64_t offset) const;
  uint64_t end() const { return end_; }
  uint64_t lost() const { return lost_; }
  void append_all_to(std::string& out) const;
  // Forgets the bytes, not the counts.
  void clear();
  // What all logs hold together.
  static size_t total() { return total_bytes; }

 private:
  struct Block {
    uint64_t offset;
    uint32_t size;
    uint32_t capacity;
    char* data() { return reinterpret_cast<char*>(this + 1); }  // lies behind it
    const char* data() const { return reinterpret_cast<const char*>(this + 1); }
  };
  Block* allocate(size_t capacity);
  void free_block(Block* block);
  void drop_oldest_tail();
  size_t tail_limit() const;

  std::vector<Block*> blocks_;  // head blocks, then tail blocks
  size_t head_count_ = 0;
  size_t tail_capacity_ = 0;
  uint64_t end_ = 0;
  uint64_t lost_ = 0;

  static size_t total_bytes;
  static constexpr size_t kSpareBlocks = 2;
  static Block* spare_blocks[kSpareBlocks];
  static size_t spare_count;
};

}  // namespace atl::agent
