#include "ridge/report/bar_chart.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace ridge {
namespace {

Terminal Unicode() {
  Terminal terminal;
  terminal.unicode = true;
  return terminal;
}

std::vector<Bar> Memory() { return {{"activations", 8, "13.2 MiB"}, {"optimizer", 1, "0.8 MiB"}}; }

BarChartOptions Narrow() {
  BarChartOptions options;
  options.bar_width = 8;
  return options;
}

TEST(BarText, HasEighthsOrHalves) {
  EXPECT_EQ(BarText(1, 3, true), "\u2588\u2588\u2588");
  EXPECT_EQ(BarText(0.5, 3, true), "\u2588\u258C");
  EXPECT_EQ(BarText(0.5, 3, false), "#:");
  EXPECT_EQ(BarText(2, 3, false), "###");
  EXPECT_EQ(BarText(1, 0, true), "");
}

TEST(BarText, ShowsWhatIsThereAndNothingElse) {
  EXPECT_EQ(BarText(1e-9, 10, true), "\u258F");
  EXPECT_EQ(BarText(1e-9, 10, false), ":");
  EXPECT_EQ(BarText(0, 10, true), "");
  EXPECT_EQ(BarText(-1, 10, true), "");
  EXPECT_EQ(BarText(std::nan(""), 10, true), "");
}

TEST(BarChart, AlignsLabelsBarsAndTexts) {
  EXPECT_EQ(BarChart(Memory(), {}, Narrow()),
            "  activations  ########  13.2 MiB\n"
            "  optimizer    #          0.8 MiB\n");
  EXPECT_EQ(BarChart(Memory(), Unicode(), Narrow()),
            "  activations  \u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588  13.2 MiB\n"
            "  optimizer    \u2588          0.8 MiB\n");
}

TEST(BarChart, FullValueSetsTheScale) {
  BarChartOptions options = Narrow();
  options.full_value = 16;
  const Bar bar = Memory()[0];
  EXPECT_EQ(BarChart({&bar, 1}, {}, options), "  activations  ####      13.2 MiB\n");
}

TEST(BarChart, ColoursTheBarAlone) {
  Terminal terminal;
  terminal.colour = true;
  const Bar bar = Memory()[0];
  EXPECT_EQ(BarChart({&bar, 1}, terminal, Narrow()),
            "  activations  \x1b[36m########\x1b[0m  13.2 MiB\n");
}

TEST(BarChart, FitsANarrowTerminal) {
  Terminal terminal;
  terminal.is_terminal = true;
  terminal.width = 32;
  const std::vector<Bar> bars = {{"layer.11.attention.scores", 1, "1.0 MiB"}};
  EXPECT_EQ(BarChart(bars, terminal), "  layer.11...  ########  1.0 MiB\n");
}

TEST(BarChart, OfZerosAndNothing) {
  const std::vector<Bar> zeros = {{"a", 0, "0 B"}, {"b", std::nan(""), ""}};
  EXPECT_EQ(BarChart(zeros, {}, Narrow()), "  a            0 B\n  b\n");
  EXPECT_EQ(BarChart({}, {}), "");
}

}  // namespace
}  // namespace ridge
