#include "cli/raw_terminal.h"

#include <termios.h>
#include <unistd.h>

#include <atomic>

namespace atl::cli {
namespace {

termios saved_settings;
std::atomic<bool> is_raw = false;

}  // namespace

RawTerminal::RawTerminal() {
  if (tcgetattr(STDIN_FILENO, &saved_settings) != 0) return;
  termios raw = saved_settings;
  cfmakeraw(&raw);
  is_raw = true;
  tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
}

RawTerminal::~RawTerminal() { restore_now(); }

void RawTerminal::restore_now() {
  if (is_raw.exchange(false)) tcsetattr(STDIN_FILENO, TCSADRAIN, &saved_settings);
}

}  // namespace atl::cli
