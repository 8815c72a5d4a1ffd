#pragma once

namespace atl::cli {

// Puts the terminal on standard input into raw mode, where there is one: every key goes to the
// sandbox. Undone when it goes out of scope. At most one at a time.
class RawTerminal {
 public:
  RawTerminal();
  ~RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

  // Fit for a signal handler.
  static void restore_now();
};

}  // namespace atl::cli
