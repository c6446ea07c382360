#include "tests/onnx/report.h"

#include <fmt/format.h>

#include <map>

namespace ridge {
namespace {

void Add(const CaseResult& result, Conformance& sum) {
  sum.passed += result.outcome == Outcome::kPassed ? 1 : 0;
  sum.failed += result.outcome == Outcome::kFailed ? 1 : 0;
  sum.unsupported += result.outcome == Outcome::kUnsupported ? 1 : 0;
  sum.not_held += result.outcome == Outcome::kNotHeld ? 1 : 0;
}

std::string Summary(const char* what, const Conformance& sum) {
  return fmt::format("| {} | {} | {} | {} | {:.1f} % | {} |\n", what, sum.held(), sum.claimed(),
                     sum.passed, 100 * sum.share(), sum.not_held);
}

std::string OperatorRows(const std::vector<CaseResult>& results) {
  std::map<std::string, Conformance> by_operator;
  for (const CaseResult& result : results) Add(result, by_operator[result.op]);
  std::string text;
  for (const auto& [op, sum] : by_operator) {
    text += fmt::format("| {} | {} | {} | {} | {} |\n", op, sum.held(), sum.claimed(), sum.passed,
                        sum.not_held);
  }
  return text;
}

// Paths differ between machines.
std::string WithoutPath(const std::string& text, const OnnxCase& onnx_case) {
  const std::string prefix = onnx_case.model + ": ";
  return text.rfind(prefix, 0) == 0 ? text.substr(prefix.size()) : text;
}

std::string CaseRows(const std::vector<OnnxCase>& cases, const std::vector<CaseResult>& results,
                     Outcome outcome) {
  std::string text;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (results[i].outcome != outcome) continue;
    text += fmt::format("- `{}`: {}\n", cases[i].name, WithoutPath(results[i].text, cases[i]));
  }
  return text.empty() ? "none\n" : text;
}

}  // namespace

Conformance Count(const std::vector<CaseResult>& results, bool standard) {
  Conformance sum;
  for (const CaseResult& result : results) {
    if (result.standard == standard) Add(result, sum);
  }
  return sum;
}

std::string ConformanceTable(const std::vector<OnnxCase>& cases,
                             const std::vector<CaseResult>& results) {
  return "# ONNX conformance\n\n"
         "Made by `ridge_onnx_nodes --table`, checked fresh by the tests. The cases are those of "
         "the wheel onnx 1.22.0.\n"
         "A case is claimed unless import refuses it as unsupported, with the reason below; every "
         "claimed one must pass\n"
         "(rtol 1e-3, atol 1e-7, element types and shapes exact). Strings, sequences and optionals "
         "are not held, and such\n"
         "cases are counted apart. Outputs drawn at random (Bernoulli, Dropout) are compared by "
         "type only.\n\n"
         "| cases | held | claimed | passed | share | not held |\n|---|---|---|---|---|---|\n" +
         Summary("ai.onnx", Count(results, true)) +
         Summary("other domains", Count(results, false)) +
         "\n## By operator\n\n| operator | held | claimed | passed | not held "
         "|\n|---|---|---|---|---|\n" +
         OperatorRows(results) + "\n## Unsupported\n\n" +
         CaseRows(cases, results, Outcome::kUnsupported) + "\n## Not held\n\n" +
         CaseRows(cases, results, Outcome::kNotHeld);
}

}  // namespace ridge
