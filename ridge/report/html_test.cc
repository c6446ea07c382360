#include "ridge/report/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ridge {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(HtmlTest, NoTextLeavesItsPlace) {
  EXPECT_EQ(HtmlEscaped("<b a=\"1\" b='2'>&\n\x01"),
            "&lt;b a=&quot;1&quot; b=&#39;2&#39;&gt;&amp;  ");
  const std::string hostile = "</title><script>alert(1)</script>";
  EXPECT_THAT(HtmlPage(hostile, ""), Not(HasSubstr("<script>")));
  EXPECT_THAT(SvgLineChart({hostile, hostile, {{hostile, {{1, 2}}}, {hostile, {{1, 3}}}}}),
              Not(HasSubstr("<script>")));
  EXPECT_THAT(SvgConfusion({hostile}, {1}), Not(HasSubstr("<script>")));
}

TEST(HtmlTest, APageLoadsNothing) {
  const std::string page = HtmlPage("t", SvgLineChart({"loss", "step", {{"a", {{1, 2}, {2, 1}}}}}));
  for (const char* part : {"http:", "https:", "src=", "@import", "url("})
    EXPECT_THAT(page, Not(HasSubstr(part)));
}

TEST(HtmlTest, ALineBreaksWhereAValueIsNoNumber) {
  const std::string chart =
      SvgLineChart({"loss", "step", {{"a", {{0, 0}, {1, kNan}, {2, 4}, {3, 2}}}}});
  EXPECT_THAT(chart, Not(HasSubstr("nan")));
  EXPECT_THAT(chart, HasSubstr("d=\"M58.0 198.0M332.7 8.0L470.0 103.0\""));
}

TEST(HtmlTest, AChartWithoutANumberIsNone) {
  EXPECT_EQ(SvgLineChart({"loss", "step", {}}), "");
  EXPECT_EQ(SvgLineChart({"loss", "step", {{"a", {{1, kNan}}}}}), "");
}

TEST(HtmlTest, AConstantLineLiesInTheMiddle) {
  EXPECT_THAT(SvgLineChart({"lr", "step", {{"a", {{1, 5}, {2, 5}}}}}), HasSubstr("103.0"));
}

TEST(HtmlTest, NamesOfClassesAreCutBetweenCharacters) {
  const std::string long_name = "aaaaaaaaaaaaaaaaaaaaa\xc3\xa4 and more";  // the 22nd byte is half
  const std::string matrix = SvgConfusion({long_name, "b"}, {1, 0, 0, 1});
  EXPECT_THAT(matrix, HasSubstr(">aaaaaaaaaaaaaaaaaaaaa</text>"));
}

TEST(HtmlTest, BarsStayInTheirRoom) {
  EXPECT_THAT(HtmlBar(7), HasSubstr("width:100.0%"));
  EXPECT_THAT(HtmlBar(kNan), HasSubstr("width:0.0%"));
}

}  // namespace
}  // namespace ridge
