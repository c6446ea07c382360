// ridge_generate: random graphs over all differentiable operators, judged by the laws of check.h.
//
//   ridge_generate --seeds 0:2000                 a range; ends with a line of counts
//   ... --every-operator                          goes on until each was drawn, for as many seeds
//                                                 again; then an error
//   ridge_generate --seeds 7:8 --law training -v  one graph, printed
//   ridge_generate --file net.ridge --seeds 7:8   another graph under the choices of seed 7
//
// A graph that breaks a law is shrunk and printed with the line that judges it again.  Exit code 1
// when there is one.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "ridge/core/files.h"
#include "ridge/core/process.h"
#include "ridge/graph/text.h"
#include "tests/generate/check.h"
#include "tests/generate/cpu_machine.h"
#include "tests/generate/draw.h"
#include "tests/generate/report.h"
#include "tests/generate/shrink.h"

namespace ridge {
namespace {

struct Options {
  uint64_t first = 0, end = 0;
  std::string law = "gradients";
  std::string file;
  std::string out;  // folder for shrunk graphs
  int most_findings = 10;
  bool verbose = false, shrink = true, operators = false, every = false;
};

bool ReadOptions(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const bool has_value = i + 1 < argc;
    if (arg == "-v") {
      options.verbose = true;
    } else if (arg == "--no-shrink") {
      options.shrink = false;
    } else if (arg == "--operators") {
      options.operators = true;
    } else if (arg == "--every-operator") {
      options.every = true;
    } else if (arg == "--seeds" && has_value) {
      const std::string range = argv[++i];
      const size_t colon = range.find(':');
      if (colon == std::string::npos) return false;
      options.first = std::strtoull(range.c_str(), nullptr, 10);
      options.end = std::strtoull(range.c_str() + colon + 1, nullptr, 10);
    } else if (arg == "--law" && has_value) {
      options.law = argv[++i];
    } else if (arg == "--file" && has_value) {
      options.file = argv[++i];
    } else if (arg == "--out" && has_value) {
      options.out = argv[++i];
    } else if (arg == "--most" && has_value) {
      options.most_findings = std::atoi(argv[++i]);
    } else {
      return false;
    }
  }
  return options.end > options.first && ParseLaws(options.law);
}

Result<Graph> GraphOf(const Options& options, uint64_t seed) {
  if (options.file.empty()) return DrawGraph(seed);
  RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.file));
  return ParseGraph(text, options.file);
}

// The graph as its text says it, so that what is printed is what was judged.
Graph ReadBack(const Graph& graph) {
  Result<Graph> again = ParseGraph(PrintGraph(graph), "drawn");
  RIDGE_CHECK(again.ok(), again.status().message());
  return *std::move(again);
}

class Run {
 public:
  Run(const Options& options, const Machine& machine)
      : options_(options), laws_(*ParseLaws(options.law)), machine_(machine) {}

  int All() {
    const double start = MonotonicSeconds();
    for (uint64_t seed = options_.first; GoesOn(seed); ++seed) {
      const Result<Graph> graph = GraphOf(options_, seed);
      if (!graph.ok()) {
        fmt::print("{}\n", graph.status().message());
        return 2;
      }
      One(ReadBack(*graph), seed);
      if (report_.findings >= options_.most_findings) break;
    }
    report_.seconds = MonotonicSeconds() - start;
    PrintReport(report_, options_.operators);
    const std::vector<std::string> missing = MissingOperators();
    if (!missing.empty()) fmt::print("not drawn: {}\n", fmt::join(missing, ", "));
    return report_.findings == 0 && missing.empty() ? 0 : 1;
  }

 private:
  // A short range may miss an operator: it is extended to at most twice its length.
  bool GoesOn(uint64_t seed) const {
    if (seed < options_.end) return true;
    return seed - options_.end < options_.end - options_.first && !MissingOperators().empty();
  }

  std::vector<std::string> MissingOperators() const {
    return options_.every ? NotDrawn(report_) : std::vector<std::string>();
  }

  void One(const Graph& graph, uint64_t seed) {
    if (options_.verbose) fmt::print("# seed {}\n{}", seed, PrintGraph(graph));
    const GraphJudgement judgement = Judge(graph, seed, laws_, machine_);
    CountGraph(graph, judgement, report_);
    if (judgement.finding) Report(graph, seed, *judgement.finding);
  }

  void Report(const Graph& graph, uint64_t seed, const Finding& finding) {
    ++report_.findings;
    fmt::print("seed {}: {}: {}\n", seed, finding.law, finding.text);
    if (!options_.shrink) return;
    const Graph small = Shrink(graph, [&](const Graph& less) {
      const GraphJudgement again = Judge(ReadBack(less), seed, laws_, machine_);
      return again.finding && again.finding->law == finding.law;
    });
    const GraphJudgement last = Judge(ReadBack(small), seed, laws_, machine_);
    const std::string name =
        options_.out.empty() ? "net.ridge" : fmt::format("{}/seed{}.ridge", options_.out, seed);
    const std::string text =
        fmt::format("# {}: {}\n# ridge_generate --file {} --seeds {}:{} --law {}\n{}", finding.law,
                    last.finding ? last.finding->text : "", name, seed, seed + 1, options_.law,
                    PrintGraph(small));
    fmt::print("{}", text);
    std::fflush(stdout);
    if (!options_.out.empty() && !WriteFileAtomically(name, text).ok())
      fmt::print("{}: not written\n", name);
  }

  const Options& options_;
  const Laws laws_;
  const Machine& machine_;
  RangeReport report_;
};

}  // namespace
}  // namespace ridge

int main(int argc, char** argv) {
  ridge::Options options;
  if (!ridge::ReadOptions(argc, argv, options)) {
    fmt::print(stderr,
               "usage: ridge_generate --seeds A:B [--law gradients|differences|passes|training|"
               "precision] [--file FILE] [--out DIR] [--most N] [--no-shrink] [--operators] "
               "[--every-operator] [-v]\n");
    return 2;
  }
  const ridge::CpuMachine machine;
  return ridge::Run(options, machine.get()).All();
}
