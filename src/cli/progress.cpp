#include "cli/progress.h"

#include <fmt/format.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>

#include "cli/terminal.h"
#include "cli/units.h"

namespace atl::cli {

constexpr auto kInterval = std::chrono::milliseconds(100);

// Numbers are what a narrow terminal must show; the name gets half of the rest, then the bar.
std::string progress_line(const std::string& label, uint64_t done, std::optional<uint64_t> total,
                          double seconds, size_t width) {
  constexpr size_t kBar = 24;
  constexpr size_t kShortestBar = 6;
  constexpr size_t kNarrow = 60;
  auto bytes = static_cast<uint64_t>(static_cast<double>(done) / std::max(seconds, 0.001));
  std::string rate = fmt::format("{:>10}/s", format_size(bytes));
  if (!total || *total == 0) {
    return fit(fmt::format("{}  {:>10}  {}", label, format_size(done), rate), width);
  }
  double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(*total));
  std::string numbers = fmt::format("{:>3}%  ", static_cast<int>(share * 100));
  if (width >= kNarrow) {
    numbers += fmt::format("{:>10} of {}  ", format_size(done), format_size(*total));
  }
  numbers += rate;
  size_t left = width - std::min(width, numbers.size() + 2);
  std::string name = fit(label, std::max(left / 2, left - std::min(left, kBar + 4)));
  left -= std::min(left, display_width(name) + 4);
  if (left < kShortestBar) return fit(fmt::format("{}  {}", name, numbers), width);
  size_t bar = std::min(left, kBar);
  auto full = static_cast<size_t>(share * static_cast<double>(bar));
  return fmt::format("{}  [{}{}] {}", name, std::string(full, '#'), std::string(bar - full, '-'),
                     numbers);
}

Progress::Progress(std::string label, bool quiet)
    : label_(printable(label)), enabled_(!quiet && isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { clear(); }

void Progress::update(uint64_t done, std::optional<uint64_t> total) {
  if (!enabled_ || Clock::now() < next_) return;
  next_ = Clock::now() + kInterval;
  double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
  size_t width = terminal_size(STDERR_FILENO).cols;
  fmt::print(stderr, "\r\x1b[K{}", progress_line(label_, done, total, seconds, width - 1));
  fflush(stderr);
  shown_ = true;
}

ProgressSink Progress::sink() {
  return [this](uint64_t done, std::optional<uint64_t> total) { update(done, total); };
}

void Progress::clear() {
  if (shown_) fmt::print(stderr, "\r\x1b[K");
  shown_ = false;
}

}  // namespace atl::cli
