// `ridge models`: the built-in models and what they take.
#include <fmt/format.h>

#include "ridge/cli/exit_codes.h"
#include "ridge/cli/output.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/units.h"
#include "ridge/models/model.h"
#include "ridge/report/table.h"

namespace ridge::cli {
namespace {

std::string InputsText(const ModelFacts& facts) {
  std::string text;
  for (const auto& [name, type] : facts.inputs) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, TypeToString(type));
  }
  return text;
}

std::string ParameterTable(const BuiltinModel& model, const Terminal& terminal) {
  Table table({{""}, {""}, {""}});
  for (const ModelParameter& parameter : model.parameters) {
    table.AddRow(
        {parameter.name, fmt::format("default {}", parameter.default_value), parameter.doc});
  }
  return table.ToText(terminal, /*indent=*/4);
}

Result<int> ListModels() {
  const Terminal terminal = DetectTerminal(stdout, ColourChoice::kAuto);
  for (const BuiltinModel& model : BuiltinModels()) {
    RIDGE_ASSIGN_OR_RETURN(const ModelFacts facts, DescribeModel(model.name));
    PrintData(fmt::format("{}  {}\n", Styled(model.name, Style::kBold, terminal), model.doc));
    PrintData(fmt::format("  {} parameters; a sample is {}\n",
                          FormatCount(static_cast<double>(facts.parameter_count)),
                          InputsText(facts)));
    PrintData(ParameterTable(model, terminal));
  }
  return kExitOk;
}

}  // namespace

VerbBody AddModels(CLI::App& /*app*/) { return ListModels; }

}  // namespace ridge::cli
