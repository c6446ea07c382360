#include "ridge/report/text.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

TEST(Text, WidthCountsCodePoints) {
  EXPECT_EQ(DisplayWidth(""), 0);
  EXPECT_EQ(DisplayWidth("abc"), 3);
  EXPECT_EQ(DisplayWidth("\u00fcber \u2588"), 6);
}

TEST(Text, ShorteningKeepsWholeCodePoints) {
  EXPECT_EQ(Shortened("layer.3.mlp.up", 14, true), "layer.3.mlp.up");
  EXPECT_EQ(Shortened("layer.3.mlp.up", 8, true), "layer.3\u2026");
  EXPECT_EQ(Shortened("layer.3.mlp.up", 8, false), "layer...");
  EXPECT_EQ(Shortened("\u00fc\u00fc\u00fc\u00fc", 3, true), "\u00fc\u00fc\u2026");
  EXPECT_EQ(Shortened("abcdef", 3, false), "abc");
  EXPECT_EQ(Shortened("abcdef", 0, true), "");
  EXPECT_EQ(Shortened("abcdef", -1, false), "");
}

TEST(Text, PadsToColumnsNotBytes) {
  EXPECT_EQ(PadRight("\u00fc", 3), "\u00fc  ");
  EXPECT_EQ(PadLeft("\u00fc", 3), "  \u00fc");
  EXPECT_EQ(PadLeft("abc", 2), "abc");
}

TEST(Text, NothingATerminalObeysStays) {
  EXPECT_EQ(Printable("a\x1b[2J\nb\x7f"), "a?[2J?b?");
  EXPECT_EQ(Printable("\u00fc\u2026\U0001F600"), "\u00fc\u2026\U0001F600");
  EXPECT_EQ(Printable("a\xC2\x9B"
                      "2J"),
            "a?2J");  // CSI as UTF-8
  EXPECT_EQ(Printable("a\x9B"
                      "2J\xFF\xE2\x82"),
            "a?2J\xFF\xE2?");  // and as a byte; half a character
}

TEST(Text, LinesStayLines) {
  EXPECT_EQ(PrintableLines("a\x1b[2J\n  b\r\n"), "a?[2J\n  b?\n");
  EXPECT_EQ(PrintableLines("one\ttwo"), "one?two");
}

}  // namespace
}  // namespace ridge
