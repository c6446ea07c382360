#include "ridge/report/terminal.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>

namespace ridge {
namespace {

using Variables = std::map<std::string, std::string>;

Terminal Describe(bool is_terminal, const Variables& variables,
                  ColourChoice choice = ColourChoice::kAuto, int columns = 100) {
  return DescribeTerminal(is_terminal, columns, choice, [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Terminal, ColourIsForTerminals) {
  EXPECT_TRUE(Describe(true, {}).colour);
  EXPECT_FALSE(Describe(false, {}).colour);
}

TEST(Terminal, NoColorCountsOnlyWhenNotEmpty) {
  EXPECT_FALSE(Describe(true, {{"NO_COLOR", "1"}}).colour);
  EXPECT_FALSE(Describe(true, {{"NO_COLOR", "0"}}).colour);
  EXPECT_TRUE(Describe(true, {{"NO_COLOR", ""}}).colour);
}

TEST(Terminal, ForceColorsAFile) {
  EXPECT_TRUE(Describe(false, {{"CLICOLOR_FORCE", "1"}}).colour);
  EXPECT_TRUE(Describe(false, {{"FORCE_COLOR", "1"}}).colour);
  EXPECT_FALSE(Describe(false, {{"FORCE_COLOR", "0"}}).colour);
  EXPECT_TRUE(Describe(true, {{"FORCE_COLOR", "1"}, {"TERM", "dumb"}}).colour);
  EXPECT_FALSE(Describe(false, {{"FORCE_COLOR", "1"}, {"NO_COLOR", "1"}}).colour);
}

TEST(Terminal, OptionWinsOverAllVariables) {
  EXPECT_TRUE(Describe(false, {{"NO_COLOR", "1"}, {"TERM", "dumb"}}, ColourChoice::kAlways).colour);
  EXPECT_FALSE(Describe(true, {{"FORCE_COLOR", "1"}}, ColourChoice::kNever).colour);
}

TEST(Terminal, DumbOneHasNeitherColourNorBar) {
  const Terminal terminal = Describe(true, {{"TERM", "dumb"}});
  EXPECT_FALSE(terminal.colour);
  EXPECT_FALSE(terminal.is_terminal);
}

TEST(Terminal, ARankOfOpenMpiWritesToNone) {
  const Terminal terminal = Describe(true, {{"OMPI_COMM_WORLD_SIZE", "2"}});
  EXPECT_FALSE(terminal.colour);
  EXPECT_FALSE(terminal.is_terminal);
}

TEST(Terminal, FirstLocaleVariableThatIsSetDecides) {
  EXPECT_TRUE(Describe(true, {{"LANG", "de_DE.UTF-8"}}).unicode);
  EXPECT_TRUE(Describe(true, {{"LANG", "C.utf8"}}).unicode);
  EXPECT_FALSE(Describe(true, {{"LANG", "C"}}).unicode);
  EXPECT_FALSE(Describe(true, {}).unicode);
  EXPECT_FALSE(Describe(true, {{"LC_ALL", "C"}, {"LANG", "de_DE.UTF-8"}}).unicode);
  EXPECT_TRUE(Describe(true, {{"LC_ALL", ""}, {"LC_CTYPE", "C.UTF-8"}, {"LANG", "C"}}).unicode);
}

TEST(Terminal, WidthComesFromSystemThenColumnsThenDefault) {
  EXPECT_EQ(Describe(true, {{"COLUMNS", "60"}}, ColourChoice::kAuto, 100).width, 100);
  EXPECT_EQ(Describe(true, {{"COLUMNS", "60"}}, ColourChoice::kAuto, 0).width, 60);
  EXPECT_EQ(Describe(true, {{"COLUMNS", "wide"}}, ColourChoice::kAuto, 0).width, 80);
  EXPECT_EQ(Describe(true, {}, ColourChoice::kAuto, 3).width, 20);
}

TEST(Terminal, AFileIsNone) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  EXPECT_FALSE(DetectTerminal(file, ColourChoice::kAuto).is_terminal);
  EXPECT_EQ(TerminalColumns(file), 0);
  std::fclose(file);
}

TEST(Terminal, StylesOnlyWithColour) {
  Terminal terminal;
  EXPECT_EQ(Styled("x", Style::kBold, terminal), "x");
  terminal.colour = true;
  EXPECT_EQ(Styled("x", Style::kBold, terminal), "\x1b[1mx\x1b[0m");
  EXPECT_EQ(Styled("x", Style::kPlain, terminal), "x");
  EXPECT_EQ(Styled("", Style::kBold, terminal), "");
}

TEST(ParseColourChoice, NamesTheChoices) {
  EXPECT_EQ(*ParseColourChoice("never"), ColourChoice::kNever);
  EXPECT_EQ(ParseColourChoice("no").status().message(),
            "--color 'no' is unknown; use auto, always or never");
}

}  // namespace
}  // namespace ridge
