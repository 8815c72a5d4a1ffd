#include "cli/progress.h"

#include <fmt/format.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>

#include "cli/terminal.h"
#include "cli/units.h"

namespace atl::cli {

constexpr auto kInterval = std::chrono::milliseconds(100);

std::string progress_line(const std::string& label, uint64_t done, std::optional<uint64_t> total,
                          double seconds, size_t width) {
  auto rate = static_cast<uint64_t>(static_cast<double>(done) / std::max(seconds, 0.001));
  std::string tail = fmt::format("{:>10}  {}/s", format_size(done), format_size(rate));
  if (!total || *total == 0) return fit(fmt::format("{}  {}", label, tail), width);
  double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(*total));
  constexpr size_t kBar = 24;
  auto full = static_cast<size_t>(share * kBar);
  std::string bar = std::string(full, '#') + std::string(kBar - full, '-');
  int percent = static_cast<int>(share * 100);
  size_t fixed = kBar + tail.size() + 13;
  std::string name = fit(label, width > fixed + 8 ? width - fixed : 8);
  return fit(fmt::format("{}  [{}] {:>3}%  {}", name, bar, percent, tail), width);
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
