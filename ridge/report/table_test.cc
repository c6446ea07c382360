#include "ridge/report/table.h"

#include <gtest/gtest.h>

#include "ridge/core/status.h"

namespace ridge {
namespace {

Table Sample() {
  Table table({{"what"}, {"planned", Align::kRight}, {"measured", Align::kRight}, {"error"}});
  table.AddRow({"peak memory", "212 MiB", "209 MiB", "+1.4 %"});
  table.AddRow({"step", "1.62 ms", "1.7 ms"});
  return table;
}

TEST(Table, AlignsColumnsAndLeavesNoTrailingBlanks) {
  EXPECT_EQ(Sample().ToText({}),
            "  what         planned  measured  error\n"
            "  peak memory  212 MiB   209 MiB  +1.4 %\n"
            "  step         1.62 ms    1.7 ms\n");
}

TEST(Table, HeaderIsBoldAndRowsHaveTheirStyle) {
  Terminal terminal;
  terminal.colour = true;
  Table table({{"a"}, {"b"}});
  table.AddRow({"1", "2"}, Style::kRed);
  EXPECT_EQ(table.ToText(terminal, 1), " \x1b[1ma  b\x1b[0m\n \x1b[31m1  2\x1b[0m\n");
}

TEST(Table, WithoutTitlesHasNoHeader) {
  Table table({{""}, {"", Align::kRight}});
  table.AddRow({"parameters", "1"});
  table.AddRule();
  table.AddRow({"total", "12"});
  EXPECT_EQ(table.ToText({}, 0), "parameters   1\n--------------\ntotal       12\n");
}

TEST(Table, ShortensTheWidestNamesOnANarrowTerminal) {
  Terminal terminal;
  terminal.is_terminal = true;
  terminal.width = 24;
  Table table({{"node"}, {"op"}, {"s", Align::kRight}});
  table.AddRow({"layer.11.attention.scores", "matmul", "1.00"});
  EXPECT_EQ(table.ToText(terminal, 0),
            "node        op         s\n"
            "layer.1...  matmul  1.00\n");
  terminal.unicode = true;
  EXPECT_EQ(table.ToText(terminal, 0),
            "node        op         s\n"
            "layer.11.\u2026  matmul  1.00\n");
  terminal.is_terminal = false;  // a file holds whole names
  EXPECT_EQ(table.ToText(terminal, 0),
            "node                       op         s\n"
            "layer.11.attention.scores  matmul  1.00\n");
}

TEST(Table, NeverCutsNumbersOrTheLastEightColumnsOfAName) {
  Terminal terminal;
  terminal.is_terminal = true;
  terminal.width = 20;
  Table table({{"n"}, {"v", Align::kRight}});
  table.AddRow({"abcdefghijklmnop", "123456789012345"});
  EXPECT_EQ(table.ToText(terminal, 0), "n                       v\nabcde...  123456789012345\n");
}

TEST(Table, CellsCannotBreakTheLine) {
  Table table({{"a\tb"}});
  table.AddRow({"x\ny\x1b[31m"});
  EXPECT_EQ(table.ToText({}, 0), "a?b\nx?y?[31m\n");
}

TEST(Table, RefusesMoreCellsThanColumns) {
  Table table({{"a"}});
  EXPECT_THROW(table.AddRow({"1", "2"}), Bug);
}

TEST(Table, OfNoRowsShowsItsHeader) {
  EXPECT_EQ(Table({{"a"}, {"b"}}).ToText({}, 0), "a  b\n");
  EXPECT_EQ(Table({}).ToText({}), "");
}

}  // namespace
}  // namespace ridge
