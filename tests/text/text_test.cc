// Text cases: tests/text/**/*.test.  A file holds one case, or several with lines of ==== between:
//
//   # name: fold/chain.test            the file's path below tests/text, in its first case
//   # why: one sentence, the law that would be broken
//   # same: LABEL                      optional: all cases of this label must give one text
//   graph g
//     x = input f32[2]
//     ...
//   pass fold                          the command
//   ----
//   expected text: a graph, or the error
//
// Commands:
//   print             the graph as it is printed again
//   check             CheckGraph: "ok" or its error
//   pass NAME,NAME    these passes in this order
//   passes [SPEC]     all passes, or those of SPEC ("-fuse", "only:fold,cse"), in their own order
//   gradients         at all choices of "# extents: B=2 C=3" and 1, with passes and without: right,
//                     or what is wrong (check_gradients.h)
//   plan [OPTIONS]    what runs when, and where its bytes are (plan_command.h)
//   saved [SPEC]      one line a pass: nodes, bytes of results, flops and traffic before and after
//   options KEY=VALUE ...   without a graph: whether `ridge train` takes them (options_command.h)
//
// tests/text/cli/ holds transcripts of the program, which tests/e2e/cli_transcripts.py runs.
// RIDGE_UPDATE_TESTS=1 writes what came out over what was expected; look at the difference.
#include "ridge/graph/text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ridge/backend/cpu/host_rules.h"
#include "ridge/core/files.h"
#include "ridge/graph/verify.h"
#include "ridge/lower/pipeline.h"
#include "tests/text/check_gradients.h"
#include "tests/text/options_command.h"
#include "tests/text/plan_command.h"

namespace ridge {
namespace {

constexpr const char* kSeparator = "====";

struct TextCase {
  std::string comments;  // with their line ends
  std::string graph;
  std::string command;
  std::string expected;

  // What stands after "# KEY: ", or "".
  std::string Header(const std::string& key) const {
    const std::string start = "# " + key + ": ";
    const size_t at = comments.find(start);
    if (at == std::string::npos) return "";
    const size_t begin = at + start.size();
    return comments.substr(begin, comments.find('\n', begin) - begin);
  }
};

std::filesystem::path Folder() {
  const char* source = std::getenv("RIDGE_SOURCE_DIR");
  return std::filesystem::path(source == nullptr ? "." : source) / "tests" / "text";
}

std::vector<std::string> TestFiles() {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(Folder(), error)) {
    if (entry.path().extension() != ".test") continue;
    const std::string file = std::filesystem::relative(entry.path(), Folder()).generic_string();
    if (!file.starts_with("cli/")) files.push_back(file);
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

enum class Part { kComments, kGraph, kExpected };

bool NeedsNoGraph(const std::string& command) { return command.starts_with("options "); }

// Comments, then the graph (its first line, and all that is indented) unless the command needs
// none, the command, ----, the rest.
std::vector<TextCase> ParseCases(const std::string& text) {
  std::vector<TextCase> cases(1);
  Part part = Part::kComments;
  for (const std::string& line : Lines(text)) {
    TextCase& now = cases.back();
    if (line == kSeparator) {
      cases.emplace_back();
      part = Part::kComments;
    } else if (line == "----") {
      part = Part::kExpected;
    } else if (part == Part::kExpected) {
      now.expected += line + "\n";
    } else if (part == Part::kComments && line.starts_with('#')) {
      now.comments += line + "\n";
    } else if (part == Part::kComments && NeedsNoGraph(line)) {
      now.command = line;
    } else if (part == Part::kComments || line.empty() || line[0] == ' ' || line[0] == '#') {
      part = Part::kGraph;
      now.graph += line + "\n";
    } else {
      now.command = line;
    }
  }
  return cases;
}

std::string PrintCases(const std::vector<TextCase>& cases) {
  std::string text;
  for (const TextCase& one : cases) {
    if (!text.empty()) text += std::string(kSeparator) + "\n";
    text += one.comments + one.graph + one.command + "\n----\n" + one.expected;
  }
  return text;
}

std::string Show(const Result<Graph>& graph) {
  return graph.ok() ? PrintGraph(*graph) : graph.status().message() + "\n";
}

// The named passes one after the other, which RunPasses() would put in its own order.
Result<Graph> RunInOrder(Graph graph, const std::string& names) {
  for (size_t begin = 0; begin < names.size();) {
    const size_t end = std::min(names.find(',', begin), names.size());
    RIDGE_ASSIGN_OR_RETURN(const PassSelection one,
                           ParsePassSpec("only:" + names.substr(begin, end - begin)));
    RIDGE_ASSIGN_OR_RETURN(graph, RunPasses(graph, one, HostRules()));
    begin = end + 1;
  }
  return graph;
}

Result<Graph> RunSpec(const Graph& graph, const std::string& spec,
                      std::vector<PassReport>* reports) {
  RIDGE_ASSIGN_OR_RETURN(const PassSelection selection, ParsePassSpec(spec));
  return RunPasses(graph, selection, HostRules(), reports);
}

std::string Saved(const Graph& graph, const std::string& spec) {
  std::vector<PassReport> reports;
  const Result<Graph> result = RunSpec(graph, spec, &reports);
  if (!result.ok()) return result.status().message() + "\n";
  std::string out;
  for (const PassReport& r : reports) {
    out +=
        fmt::format("{} nodes {}->{} bytes {}->{} flops {}->{} traffic {}->{}\n", r.name,
                    r.before.nodes, r.after.nodes, r.before.result_bytes, r.after.result_bytes,
                    r.before.flops, r.after.flops, r.before.traffic_bytes, r.after.traffic_bytes);
  }
  return out;
}

std::string RunCommand(const TextCase& one) {
  if (one.command == "gradients") return CheckGradients(one.graph, one.Header("extents"));
  if (NeedsNoGraph(one.command)) return CheckOptionsText(one.command.substr(one.command.find(' ')));
  const Result<Graph> graph = ParseGraph(one.graph, "graph");
  if (!graph.ok()) return graph.status().message() + "\n";
  const size_t space = std::min(one.command.find(' '), one.command.size());
  const std::string verb = one.command.substr(0, space);
  const std::string rest = space < one.command.size() ? one.command.substr(space + 1) : "";
  if (verb == "print") return PrintGraph(*graph);
  if (verb == "check") {
    const Status status = CheckGraph(*graph);
    return status.ok() ? "ok\n" : status.message() + "\n";
  }
  if (verb == "pass") return Show(RunInOrder(*graph, rest));
  if (verb == "passes") return Show(RunSpec(*graph, rest, nullptr));
  if (verb == "saved") return Saved(*graph, rest);
  if (verb == "plan") return PlanText(*graph, rest);
  return fmt::format(
      "unknown command '{}'; known: print, check, gradients, pass, passes, plan, saved, options\n",
      verb);
}

Result<std::vector<TextCase>> LoadCases(const std::string& file) {
  RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile((Folder() / file).string()));
  return ParseCases(text);
}

bool Updating() { return std::getenv("RIDGE_UPDATE_TESTS") != nullptr; }

class TextFile : public testing::TestWithParam<std::string> {};

TEST_P(TextFile, GivesTheExpectedText) {
  Result<std::vector<TextCase>> cases = LoadCases(GetParam());
  ASSERT_TRUE(cases.ok()) << cases.status().message();
  EXPECT_EQ((*cases)[0].Header("name"), GetParam());
  for (TextCase& one : *cases) {
    EXPECT_NE(one.Header("why"), "") << "every case says why\n" << one.graph;
    const std::string actual = RunCommand(one);
    if (Updating()) {
      one.expected = actual;
    } else {
      EXPECT_EQ(actual, one.expected)
          << one.comments << one.graph << one.command
          << "\nrerun: ridge_tests --gtest_filter='*TextFile*' (tests/text/" << GetParam() << ")";
    }
  }
  if (Updating()) {
    const Status status = WriteFileAtomically((Folder() / GetParam()).string(), PrintCases(*cases));
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

std::string NameOf(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Text, TextFile, testing::ValuesIn(TestFiles()), NameOf);

// Those that the planner makes are tested with it.
TEST(TextFiles, EveryPassHasAFolderOfCases) {
  std::set<std::string> folders;
  for (const std::string& file : TestFiles())
    folders.insert(std::filesystem::path(file).begin()->string());
  const Result<PassSelection> passes = ParsePassSpec("");
  ASSERT_TRUE(passes.ok());
  for (const std::string& name : passes->names) {
    if (name != "inplace" && name != "layout") {
      EXPECT_TRUE(folders.contains(name)) << name;
    }
  }
}

TEST(TextFiles, CasesOfOneLabelReachOneText) {
  std::map<std::string, std::vector<std::string>> texts;
  for (const std::string& file : TestFiles()) {
    const Result<std::vector<TextCase>> cases = LoadCases(file);
    ASSERT_TRUE(cases.ok()) << cases.status().message();
    for (const TextCase& one : *cases) {
      const std::string label = one.Header("same");
      if (!label.empty()) texts[label].push_back(RunCommand(one));
    }
  }
  EXPECT_FALSE(texts.empty());
  for (const auto& [label, all] : texts) {
    EXPECT_GE(all.size(), 2u) << label << " stands alone";
    for (const std::string& text : all) EXPECT_EQ(text, all[0]) << "same: " << label;
  }
}

}  // namespace
}  // namespace ridge
