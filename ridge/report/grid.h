// Grid: a table of texts with the numbers behind them: sortable in pages, and as Markdown.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace ridge {

struct GridCell {
  std::string text;
  std::optional<double> value = {};  // what the text was made of; cells without one sort as text
  std::optional<double> bar = {};    // a share of the cell, 0 to 1, that a page draws
  // What the text sums up ("2 notes"): a page folds them behind it, Markdown has them instead.
  std::vector<std::string> items = {};
};

struct Grid {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<GridCell>> rows;  // a cell a column
};

// A table with its title as the caption; a click on a column's title, which is a button, sorts by
// it, and a status line says so.  The exact number stands in `data-v` of a cell.  A long table
// scrolls in a frame of its own.
std::string HtmlGrid(const Grid& grid);

// What the page needs once for its grids: style and script.
extern const char kGridStyle[];
extern const char kGridScript[];

// "### TITLE" and a table of GitHub's Markdown, columns of numbers aligned to the right.
std::string MarkdownGrid(const Grid& grid);

}  // namespace ridge
