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
