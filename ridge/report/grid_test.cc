#include "ridge/report/grid.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

Grid Sample() {
  return {"Bytes & more", {"name", "bytes"}, {{{"<a>|b"}, {"1.00 KiB", 1024.0}}, {{"c_d"}, {"?"}}}};
}

TEST(Grid, HtmlHasExactNumbersAndButtons) {
  EXPECT_EQ(
      HtmlGrid(Sample()),
      "<div class=\"scroll\"><table class=\"grid-table\"><caption>Bytes &amp; more</caption>\n"
      "<thead><tr><th scope=\"col\" class=\"t\"><button type=\"button\">name</button></th>"
      "<th scope=\"col\"><button type=\"button\">bytes</button></th></tr></thead>\n<tbody>\n"
      "<tr><td class=\"t\">&lt;a&gt;|b</td><td data-v=\"1024\">1.00 KiB</td></tr>\n"
      "<tr><td class=\"t\">c_d</td><td>?</td></tr>\n"
      "</tbody></table></div>\n");
}

TEST(Grid, APageDrawsAShareAndFoldsItems) {
  const Grid grid = {"t", {"a", "b"}, {{{"50 %", 0.5, 0.5}, {"2 notes", 2.0, {}, {"x", "<y>"}}}}};
  const std::string html = HtmlGrid(grid);
  EXPECT_NE(html.find("style=\"width:50.0%\""), std::string::npos);
  EXPECT_NE(html.find("<details><summary>2 notes</summary><ul><li>x</li><li>&lt;y&gt;</li></ul>"),
            std::string::npos);
  EXPECT_EQ(MarkdownGrid(grid), "### t\n\n| a | b |\n|---:|---:|\n| 50 % | x; \\<y> |\n");
}

TEST(Grid, ALongTableScrollsByTheKeyboard) {
  Grid grid = {"t", {"a"}, {}};
  grid.rows.resize(30, {{"x"}});
  EXPECT_EQ(HtmlGrid(grid).find("tabindex"), std::string::npos);
  grid.rows.push_back({{"x"}});
  EXPECT_EQ(HtmlGrid(grid).find("<div class=\"scroll long\" role=\"region\" tabindex=\"0\" "
                                "aria-label=\"t\"><table"),
            0);
}

TEST(Grid, MarkdownEscapesAndAlignsNumbersRight) {
  EXPECT_EQ(MarkdownGrid(Sample()),
            "### Bytes & more\n\n"
            "| name | bytes |\n"
            "|---|---:|\n"
            "| \\<a>\\|b | 1.00 KiB |\n"
            "| c\\_d | ? |\n");
}

}  // namespace
}  // namespace ridge
