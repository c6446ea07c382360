// ridge_onnx_nodes: runs ONNX's conformance cases on import and the operators' references.
//
//   ridge_onnx_nodes [--data DIR] [--filter GLOB] [-v] [--table FILE] [--check FILE]
//                    [--gradients] [--jobs N] [--seconds N]
//
//   --data       onnx/backend/test/data of the wheel; default build/deps/onnx-tests/...
//   --filter     cases by name or operator: 'node/test_conv*', 'Conv'; may be given several times
//   -v           a line for every case
//   --table      writes the conformance table
//   --check      fails unless the file is the table of this run
//   --gradients  checks gradients by central differences instead of outputs
// Exit code: 0; 1 when a claimed case fails, the share is under 80 % or the table is not fresh; 77
// when the cases are not there.
#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "ridge/core/files.h"
#include "tests/onnx/gradients.h"
#include "tests/onnx/report.h"
#include "tests/onnx/worker.h"

namespace ridge {
namespace {

constexpr double kLeastShare = 0.8;

struct Options {
  std::string data, table, check;
  std::vector<std::string> filters;
  bool verbose = false, gradients = false;
  int jobs = static_cast<int>(std::thread::hardware_concurrency());
  int seconds = 60;
};

std::string DefaultData() {
  const char* source = std::getenv("RIDGE_SOURCE_DIR");
  return std::string(source != nullptr ? source : ".") +
         "/build/deps/onnx-tests/onnx/backend/test/data";
}

bool ReadOptions(int argc, char** argv, Options& options) {
  options.data = DefaultData();
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "-v") {
      options.verbose = true;
    } else if (name == "--gradients") {
      options.gradients = true;
    } else if (i + 1 == argc) {
      return false;
    } else if (name == "--data") {
      options.data = argv[++i];
    } else if (name == "--filter") {
      options.filters.push_back(argv[++i]);
    } else if (name == "--table") {
      options.table = argv[++i];
    } else if (name == "--check") {
      options.check = argv[++i];
    } else if (name == "--jobs") {
      options.jobs = std::atoi(argv[++i]);
    } else if (name == "--seconds") {
      options.seconds = std::atoi(argv[++i]);
    } else {
      return false;
    }
  }
  return true;
}

// A pattern names cases ("test_conv*", "node/test_conv*") or an operator ("Conv").
bool Wanted(const OnnxCase& onnx_case, const Options& options) {
  if (options.filters.empty()) return true;
  const std::string name = onnx_case.name.substr(onnx_case.name.find('/') + 1);
  std::string op;
  for (const std::string& filter : options.filters) {
    if (MatchesGlob(onnx_case.name, filter) || MatchesGlob(name, filter)) return true;
    if (filter.find('_') != std::string::npos) continue;
    if (op.empty()) op = ReadOperatorOfCase(onnx_case);
    if (MatchesGlob(op, filter)) return true;
  }
  return false;
}

const char* OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPassed:
      return "passed     ";
    case Outcome::kFailed:
      return "FAILED     ";
    case Outcome::kUnsupported:
      return "unsupported";
    case Outcome::kNotHeld:
      return "not held   ";
    case Outcome::kSkipped:
      return "skipped    ";
  }
  return "?";
}

void Print(const std::vector<OnnxCase>& cases, const std::vector<CaseResult>& results,
           bool verbose) {
  for (size_t i = 0; i < cases.size(); ++i) {
    if (!verbose && results[i].outcome != Outcome::kFailed) continue;
    fmt::print("{}  {:<16} {}{}{}\n", OutcomeName(results[i].outcome), results[i].op, cases[i].name,
               results[i].text.empty() ? "" : ": ", results[i].text);
  }
}

bool PrintSummary(const char* what, const Conformance& sum, double least_share) {
  if (sum.held() + sum.not_held == 0) return true;
  fmt::print(
      "{}: {} cases, {} claimed, {} passed ({:.1f} %), {} failed, {} unsupported; {} not "
      "held\n",
      what, sum.held(), sum.claimed(), sum.passed, 100 * sum.share(), sum.failed, sum.unsupported,
      sum.not_held);
  return sum.failed == 0 && sum.share() >= least_share;
}

bool IsFresh(const std::string& path, const std::string& table) {
  const Result<std::string> committed = ReadFile(path);
  if (committed.ok() && *committed == table) return true;
  fmt::print("{} is not the table of this run. to do: ridge_onnx_nodes --table {}\n", path, path);
  return false;
}

int Run(const Options& options) {
  const Result<std::vector<OnnxCase>> all = ListOnnxCases(options.data);
  if (!all.ok()) {
    fmt::print("{}\n", all.status().message());
    return 77;
  }
  std::vector<OnnxCase> cases;
  for (const OnnxCase& onnx_case : *all) {
    if (Wanted(onnx_case, options)) cases.push_back(onnx_case);
  }
  const std::vector<CaseResult> results = RunInProcesses(
      cases, options.gradients ? CheckGradientsOfCase : RunOnnxCase, options.jobs, options.seconds);
  Print(cases, results, options.verbose);
  if (options.gradients) return ReportGradients(cases, results, options.filters.empty()) ? 0 : 1;
  const double least_share = options.filters.empty() ? kLeastShare : 0;
  bool good = PrintSummary("ai.onnx", Count(results, true), least_share);
  good = PrintSummary("other domains", Count(results, false), 0) && good;
  const std::string table = ConformanceTable(cases, results);
  if (!options.table.empty()) good = WriteFileAtomically(options.table, table).ok() && good;
  if (!options.check.empty()) good = IsFresh(options.check, table) && good;
  return good ? 0 : 1;
}

}  // namespace
}  // namespace ridge

int main(int argc, char** argv) {
  ridge::Options options;
  if (!ridge::ReadOptions(argc, argv, options)) {
    fmt::print(stderr,
               "usage: ridge_onnx_nodes [--data DIR] [--filter GLOB]... [-v] [--table FILE] "
               "[--check FILE] [--gradients] [--jobs N] [--seconds N]\n");
    return 2;
  }
  return ridge::Run(options);
}
