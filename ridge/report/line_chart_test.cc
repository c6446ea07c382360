#include "ridge/report/line_chart.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ridge/report/text.h"

namespace ridge {
namespace {

Terminal Plain(int width) { return {.width = width}; }
Terminal Rich(int width) {
  return {.is_terminal = true, .colour = true, .unicode = true, .width = width};
}

LineChart Two() {
  return {"loss",
          "step",
          {{"training", {{1, 4.0}, {2, 3.0}, {3, 2.0}, {4, 1.0}}},
           {"validation", {{2, 4.0}, {4, 4.0}}}}};
}

TEST(LineChart, PlainTextHasAMarkForEachLine) {
  EXPECT_EQ(LineChartText(Two(), Plain(18), {.rows = 4}),
            "  loss\n"
            "  4 +... oooooooo\n"
            "    |   ...\n"
            "    |      ...\n"
            "  1 +         ...\n"
            "     step 1     4\n"
            "  . training  o validation\n");
}

TEST(LineChart, OnATerminalDotsHaveTheColourOfTheirLine) {
  const std::string text = LineChartText(Two(), Rich(40), {.rows = 3});
  EXPECT_NE(text.find("\x1b[36m"), std::string::npos);
  EXPECT_NE(text.find("\x1b[33m"), std::string::npos);
  EXPECT_NE(text.find("\u2524"), std::string::npos);
  EXPECT_EQ(text.find(". training"), std::string::npos);
}

TEST(LineChart, OneLineHasDotsWithoutColourToo) {
  LineChart chart = Two();
  chart.lines.pop_back();
  Terminal terminal = Rich(17);
  terminal.colour = false;
  EXPECT_EQ(LineChartText(chart, terminal, {.rows = 1}),
            "  loss\n"
            "  4 \u2524\u2809\u2809\u2812\u2812\u2812\u2822\u2824\u2824\u2824\u28c0\u28c0\n"
            "     step 1    4\n"
            "  training\n");
}

TEST(LineChart, NoLineIsWiderThanTheTerminal) {
  for (const int width : {20, 40, 200}) {
    const std::string text = LineChartText(Two(), Plain(width));
    size_t widest = 0, at = 0;
    for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', at)) {
      widest = std::max(widest, static_cast<size_t>(DisplayWidth(text.substr(at, end - at))));
      at = end + 1;
    }
    EXPECT_LE(widest, static_cast<size_t>(std::max(width - 1, 26))) << text;  // 26: the legend
    EXPECT_LE(widest, 100U);
  }
}

TEST(LineChart, WhatIsNotFiniteLeavesAGapAndNoPointNoChart) {
  LineChart chart = {"loss", "step", {{"a", {{1, NAN}, {INFINITY, 1}}}}};
  EXPECT_EQ(LineChartText(chart, Plain(40)), "");
  EXPECT_EQ(LineChartText({"loss", "step", {}}, Plain(40)), "");
  chart.lines[0].points.push_back({5, 2.5});  // one point, so one value
  EXPECT_EQ(LineChartText(chart, Plain(20), {.rows = 1}),
            "  loss\n"
            "  2.5 +      .\n"
            "       step 5     5\n"
            "  . a\n");
}

TEST(LineChart, ControlCharactersOfNamesDoNotReachTheTerminal) {
  const LineChart chart = {"l\x1b[2J", "step", {{"a\x1b", {{1, 1}}}}};
  EXPECT_EQ(LineChartText(chart, Plain(40)).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace ridge
