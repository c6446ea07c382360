// Table: rows in aligned columns, without boxes.
//
//   Table table({{"what"}, {"planned", Align::kRight}, {"measured", Align::kRight}});
//   table.AddRow({"peak memory", "212 MiB", "209 MiB"});
//   sink(table.ToText(terminal));
#pragma once
#include <string>
#include <vector>

#include "ridge/report/terminal.h"

namespace ridge {

enum class Align { kLeft, kRight };

struct Column {
  std::string title;  // without any title there is no header line
  Align align = Align::kLeft;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Missing cells are empty.  REQUIRES: no more cells than columns.  Control characters are
  // replaced, so cells may hold names from files; colour comes through `style`.
  void AddRow(std::vector<std::string> cells, Style style = Style::kPlain);
  void AddRule();  // a line over all columns, before a total

  // Lines that end in a newline and in no blank.  On a terminal the widest left-aligned column is
  // shortened where the lines would not fit.
  std::string ToText(const Terminal& terminal, int indent = 2) const;

 private:
  struct Row {
    std::vector<std::string> cells;  // empty: a rule
    Style style = Style::kPlain;
  };
  std::vector<int> Widths(const Terminal& terminal, int indent) const;
  std::string RowText(const Row& row, const std::vector<int>& widths, const Terminal& terminal,
                      int indent) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace ridge
