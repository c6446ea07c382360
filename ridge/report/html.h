// Pages of HTML: one file that loads nothing, for light and dark screens, wide and narrow ones.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ridge/data/image/encode.h"
#include "ridge/report/line_chart.h"

namespace ridge {

// Text between tags or within the quotes of an attribute.  Control characters become blanks.
std::string HtmlEscaped(std::string_view text);

// The whole page; `style` is added to that of all pages, `body` follows the title.
std::string HtmlPage(const std::string& title, const std::string& body,
                     const std::string& style = "");

// Rows of cells that are HTML already; the first row are titles.  The first column is text, the
// others are numbers, unless `texts`.
std::string HtmlTable(const std::vector<std::vector<std::string>>& rows, bool texts = false);

// The picture itself, as PNG; `origin` is shown where the mouse rests.
std::string HtmlPicture(const RgbPicture& picture, const std::string& text,
                        const std::string& origin);

// A horizontal bar of `share` (0 to 1) of its cell.
std::string HtmlBar(double share);

// The chart as SVG: values at the grid's lines, the names of the lines below, each point's numbers
// where the mouse rests.  "" when no line has a finite point.
std::string SvgLineChart(const LineChart& chart);

// Of at most 64 classes: row by row the share of the samples of a class that were taken for
// another, from 0 to 1, with counts.  REQUIRES: counts.size() == names.size() squared.
std::string SvgConfusion(const std::vector<std::string>& names, const std::vector<int64_t>& counts);

}  // namespace ridge
