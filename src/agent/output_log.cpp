#include "agent/output_log.h"

#include <stdlib.h>

#include <algorithm>

namespace atl::agent {

size_t OutputLog::total_bytes = 0;
OutputLog::Block* OutputLog::spare_blocks[kSpareBlocks];
size_t OutputLog::spare_count = 0;

// Most commands print little: the first block is a page, so that a short output costs little.
static constexpr size_t kFirstBlock = 4096 - 64;
static constexpr size_t kBlock = 128u << 10;
// Less room than this is not worth a read of its own.
static constexpr size_t kWorthwhile = 16u << 10;

// Blocks of a long output are used again at once: fresh memory from the kernel costs more than the
// copy into it.
OutputLog::Block* OutputLog::allocate(size_t capacity) {
  Block* block = nullptr;
  if (capacity == kBlock && spare_count > 0) {
    block = spare_blocks[--spare_count];
  } else {
    block = static_cast<Block*>(malloc(sizeof(Block) + capacity));
    if (block == nullptr) abort();
  }
  *block = {.offset = end_, .size = 0, .capacity = static_cast<uint32_t>(capacity)};
  total_bytes += capacity;
  return block;
}

void OutputLog::free_block(Block* block) {
  total_bytes -= block->capacity;
  if (block->capacity == kBlock && spare_count < kSpareBlocks) {
    spare_blocks[spare_count++] = block;
  } else {
    free(block);
  }
}

size_t OutputLog::tail_limit() const {
  return total_bytes > kBudgetBytes ? kShortTailBytes : kTailBytes;
}

void OutputLog::drop_oldest_tail() {
  Block* oldest = blocks_[head_count_];
  lost_ += oldest->size;
  tail_capacity_ -= oldest->capacity;
  free_block(oldest);
  blocks_.erase(blocks_.begin() + static_cast<ptrdiff_t>(head_count_));
}

std::span<char> OutputLog::prepare() {
  bool full = blocks_.empty() || blocks_.back()->size == blocks_.back()->capacity;
  bool nearly_full =
      !full && blocks_.size() > 1 && blocks_.back()->capacity - blocks_.back()->size < kWorthwhile;
  if (full || nearly_full) {
    if (end_ < kHeadBytes) {
      blocks_.push_back(allocate(blocks_.empty() ? kFirstBlock : kBlock));
      head_count_ = blocks_.size();
    } else {
      while (tail_capacity_ + kBlock > tail_limit() && head_count_ < blocks_.size()) {
        drop_oldest_tail();
      }
      blocks_.push_back(allocate(kBlock));
      tail_capacity_ += kBlock;
    }
  }
  Block* last = blocks_.back();
  return {last->data() + last->size, last->capacity - last->size};
}

void OutputLog::commit(size_t count) {
  blocks_.back()->size += static_cast<uint32_t>(count);
  end_ += count;
}

OutputLog::View OutputLog::at(uint64_t offset) const {
  auto after = std::upper_bound(
      blocks_.begin(), blocks_.end(), offset,
      [](uint64_t wanted, const Block* block) { return wanted < block->offset + block->size; });
  if (after == blocks_.end()) return {.offset = end_, .data = {}};
  const Block* block = *after;
  uint64_t from = std::max(offset, block->offset);
  size_t skip = static_cast<size_t>(from - block->offset);
  return {.offset = from, .data = {block->data() + skip, block->size - skip}};
}

void OutputLog::append_all_to(std::string& out) const {
  for (const Block* block : blocks_) out.append(block->data(), block->size);
}

void OutputLog::clear() {
  for (Block* block : blocks_) {
    lost_ += block->size;
    free_block(block);
  }
  blocks_.clear();
  head_count_ = 0;
  tail_capacity_ = 0;
}

}  // namespace atl::agent
