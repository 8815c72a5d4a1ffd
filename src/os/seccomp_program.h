// Assembles classic BPF back to front: jumps only go forward, so every target exists before the
// instruction that jumps to it, and equal endings are shared.
#pragma once

#include <linux/filter.h>
#include <stddef.h>

#include <cstdint>
#include <vector>

namespace atl {

class SeccompProgram {
 public:
  // An instruction, counted from the end of the program.
  using Label = size_t;

  Label ret(uint32_t action);
  // An instruction that goes on to `next`.
  Label step(uint32_t code, uint32_t k, Label next);
  Label branch(uint32_t code, uint32_t k, Label yes, Label no);

  // The last instruction added becomes the first one executed.
  std::vector<sock_filter> take() &&;

 private:
  Label push(uint32_t code, uint32_t k, uint8_t yes = 0, uint8_t no = 0);
  size_t distance_to(Label target) const { return reversed_.size() - target - 1; }
  Label within_reach(Label target);

  std::vector<sock_filter> reversed_;
};

}  // namespace atl
