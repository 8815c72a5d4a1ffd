#include "cli/table.h"

#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

namespace atl::cli {
namespace {

constexpr size_t kGap = 2;
constexpr size_t kNarrowest = 8;  // an elastic column keeps at least this

std::string pad(const std::string& text, size_t width, Column::Kind kind) {
  size_t used = display_width(text);
  std::string space(used < width ? width - used : 0, ' ');
  return kind == Column::Kind::Right ? space + text : text + space;
}

}  // namespace

std::vector<size_t> Table::widths(size_t max_width) const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); i++) {
    size_t width = display_width(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, display_width(row[i].text));
    widths.push_back(width);
  }
  if (max_width == 0) return widths;
  size_t gaps = kGap * (columns_.size() - 1);
  // The widest elastic column gives way, one column at a time, so that all suffer alike.
  while (std::accumulate(widths.begin(), widths.end(), gaps) > max_width) {
    size_t widest = columns_.size();
    for (size_t i = 0; i < columns_.size(); i++) {
      bool can = columns_[i].kind == Column::Kind::Elastic && widths[i] > kNarrowest;
      if (can && (widest == columns_.size() || widths[i] > widths[widest])) widest = i;
    }
    if (widest == columns_.size()) break;
    widths[widest]--;
  }
  return widths;
}

std::string Table::render(const TableStyle& style) const {
  std::vector<size_t> width = widths(style.max_width);
  std::string out;
  auto line = [&](auto cell_at) {
    std::string text;
    for (size_t i = 0; i < columns_.size(); i++) {
      Cell cell = cell_at(i);
      std::string shown = fit(cell.text, width[i]);
      bool last = i + 1 == columns_.size();
      bool bare = last && columns_[i].kind != Column::Kind::Right;
      text +=
          paint(bare ? shown : pad(shown, width[i], columns_[i].kind), cell.colour, style.colour);
      if (!last) text.append(kGap, ' ');
    }
    while (text.ends_with(' ')) text.pop_back();
    out += text + "\n";
  };
  line([&](size_t i) { return Cell(columns_[i].title, Colour::Bold); });
  for (const auto& row : rows_) line([&](size_t i) { return row[i]; });
  return out;
}

void Table::print() const {
  bool terminal = isatty(STDOUT_FILENO) == 1;
  std::string text =
      render({terminal ? terminal_size(STDOUT_FILENO).cols : size_t{0}, use_colour(STDOUT_FILENO)});
  fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace atl::cli
