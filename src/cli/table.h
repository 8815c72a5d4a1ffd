#pragma once

#include <string>
#include <vector>

#include "cli/terminal.h"

namespace atl::cli {

struct Cell {
  Cell(std::string shown, Colour painted = Colour::None)
      : text(std::move(shown)), colour(painted) {}
  Cell(const char* shown) : text(shown), colour(Colour::None) {}
  std::string text;
  Colour colour;
};

struct Column {
  enum class Kind : uint8_t {
    Left,
    Right,
    Elastic,  // left, and the first to lose when the terminal is narrow
  };
  std::string title;
  Kind kind = Kind::Left;
};

struct TableStyle {
  size_t max_width = 0;  // 0: as wide as it gets, which is right for a pipe
  bool colour = false;
};

// Columns as wide as their content, two spaces apart.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }
  std::string render(const TableStyle& style) const;
  // To standard output, in the style that suits it.
  void print() const;

 private:
  std::vector<size_t> widths(size_t max_width) const;
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace atl::cli
