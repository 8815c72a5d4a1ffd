#include "base/text_diff.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace atl {
namespace {

using Lines = std::vector<std::string_view>;

Lines split(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    size_t end = text.find('\n');
    size_t size = end == text.npos ? text.size() : end + 1;
    lines.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return lines;
}

enum class Kind : uint8_t { Same, Removed, Added };
struct Edit {
  Kind kind;
  size_t before, after;  // line numbers, from 0, where it applies
};

// Myers' greedy algorithm: the furthest point on each diagonal for each number of edits. The rows
// are kept so that the way can be walked back.
class Search {
 public:
  Search(const Lines& before, const Lines& after, size_t max_edits)
      : a_(before), b_(after), max_(std::min(max_edits, before.size() + after.size())) {}

  // False where it takes more edits than allowed.
  bool run() {
    std::vector<int64_t> furthest(2 * max_ + 3, 0);
    auto offset = static_cast<int64_t>(max_) + 1;
    for (int64_t edits = 0; edits <= static_cast<int64_t>(max_); edits++) {
      rows_.push_back(furthest);
      for (int64_t k = -edits; k <= edits; k += 2) {
        auto at = [&](int64_t diagonal) -> int64_t& {
          return furthest[static_cast<size_t>(diagonal + offset)];
        };
        bool down = k == -edits || (k != edits && at(k - 1) < at(k + 1));
        int64_t x = down ? at(k + 1) : at(k - 1) + 1;
        int64_t y = x - k;
        while (same(x, y)) x++, y++;
        at(k) = x;
        if (x >= size(a_) && y >= size(b_)) return true;
      }
    }
    return false;
  }

  std::vector<Edit> edits() const {
    std::vector<Edit> all;
    auto offset = static_cast<int64_t>(max_) + 1;
    int64_t x = size(a_), y = size(b_);
    for (auto step = static_cast<int64_t>(rows_.size()) - 1; step >= 0; step--) {
      const auto& row = rows_[static_cast<size_t>(step)];
      auto at = [&](int64_t diagonal) { return row[static_cast<size_t>(diagonal + offset)]; };
      int64_t k = x - y;
      bool down = k == -step || (k != step && at(k - 1) < at(k + 1));
      int64_t from_x = step == 0 ? 0 : at(down ? k + 1 : k - 1);
      int64_t from_y = step == 0 ? 0 : from_x - (down ? k + 1 : k - 1);
      while (x > from_x && y > from_y) add(all, Kind::Same, --x, --y);
      if (step == 0) break;
      if (down)
        add(all, Kind::Added, x, --y);
      else
        add(all, Kind::Removed, --x, y);
    }
    std::reverse(all.begin(), all.end());
    return all;
  }

 private:
  static int64_t size(const Lines& lines) { return static_cast<int64_t>(lines.size()); }
  static void add(std::vector<Edit>& all, Kind kind, int64_t x, int64_t y) {
    all.push_back({kind, static_cast<size_t>(x), static_cast<size_t>(y)});
  }
  bool same(int64_t x, int64_t y) const {
    return x < size(a_) && y < size(b_) && a_[static_cast<size_t>(x)] == b_[static_cast<size_t>(y)];
  }

  const Lines& a_;
  const Lines& b_;
  size_t max_;
  std::vector<std::vector<int64_t>> rows_;
};

std::vector<Edit> replace_all(const Lines& before, const Lines& after) {
  std::vector<Edit> all;
  for (size_t i = 0; i < before.size(); i++) all.push_back({Kind::Removed, i, 0});
  for (size_t i = 0; i < after.size(); i++) all.push_back({Kind::Added, before.size(), i});
  return all;
}

void append_line(std::string& out, char mark, std::string_view line) {
  out.push_back(mark);
  out.append(line);
  if (!line.ends_with('\n')) out.append("\n\\ No newline at end of file\n");
}

std::string range(size_t first, size_t count) {
  size_t shown = count == 0 ? first : first + 1;
  std::string text = std::to_string(shown);
  return count == 1 ? text : text + "," + std::to_string(count);
}

void append_hunk(std::string& out, const Lines& before, const Lines& after, const Edit* begin,
                 const Edit* end) {
  auto count = [&](Kind other) {
    return static_cast<size_t>(
        std::count_if(begin, end, [&](const Edit& edit) { return edit.kind != other; }));
  };
  out += "@@ -" + range(begin->before, count(Kind::Added)) + " +" +
         range(begin->after, count(Kind::Removed)) + " @@\n";
  for (const Edit* edit = begin; edit != end; edit++) {
    if (edit->kind == Kind::Same) append_line(out, ' ', before[edit->before]);
    if (edit->kind == Kind::Removed) append_line(out, '-', before[edit->before]);
    if (edit->kind == Kind::Added) append_line(out, '+', after[edit->after]);
  }
}

size_t sequence_size(uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  return lead >= 0xF0 && lead < 0xF5 ? 4 : 0;
}

}  // namespace

bool is_text(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size();) {
    size_t size = sequence_size(static_cast<uint8_t>(bytes[i]));
    if (size == 0 || bytes[i] == 0 || i + size > bytes.size()) return false;
    for (size_t k = 1; k < size; k++) {
      if ((static_cast<uint8_t>(bytes[i + k]) & 0xC0) != 0x80) return false;
    }
    i += size;
  }
  return true;
}

std::string unified_diff(std::string_view before, std::string_view after, size_t context,
                         size_t max_edits) {
  if (before == after) return {};
  Lines a = split(before), b = split(after);
  Search search(a, b, max_edits);
  std::vector<Edit> edits = search.run() ? search.edits() : replace_all(a, b);
  std::string out;
  for (size_t i = 0; i < edits.size();) {
    if (edits[i].kind == Kind::Same) {
      i++;
      continue;
    }
    // A hunk goes on while the next change is near enough to share its context.
    size_t begin = i - std::min(i, context), end = i + 1, last = i;
    for (size_t next = i + 1; next < edits.size() && next - last <= 2 * context + 1; next++) {
      if (edits[next].kind != Kind::Same) last = next;
    }
    end = std::min(last + context + 1, edits.size());
    append_hunk(out, a, b, edits.data() + begin, edits.data() + end);
    i = end;
  }
  return out;
}

}  // namespace atl
