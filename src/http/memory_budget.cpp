#include "http/memory_budget.h"

namespace atl::http {

MemoryShare::~MemoryShare() {
  if (budget_ != nullptr) budget_->used_ -= counted();
}

Result<void> MemoryShare::take(size_t bytes) {
  if (budget_ == nullptr) return {};
  size_t before = counted();
  taken_ += bytes;
  size_t more = counted() - before;
  if (more <= budget_->limit_ - budget_->used_) {
    budget_->used_ += more;
    return {};
  }
  taken_ -= bytes;
  return fail(ErrorCode::ResourceExhausted,
              "too many large requests at once; try again in a moment, or stream instead: uploads "
              "and downloads of files have no such limit");
}

}  // namespace atl::http
