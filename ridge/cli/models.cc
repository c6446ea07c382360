// `ridge models`: the built-in models, their sizes and arguments.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/output.h"
#include "ridge/cli/train_flags.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/units.h"
#include "ridge/models/model.h"
#include "ridge/report/table.h"

namespace ridge::cli {
namespace {

struct ModelsVerb {
  std::optional<std::string> model;
  OutputFlags output;
  bool json = false;
};

struct Listed {
  std::string name;  // of the model, or of a variant of it
  const BuiltinModel* model = nullptr;
  ModelFacts facts;
};

// All models and variants at their default sizes, or the requested one with its arguments.
Result<std::vector<Listed>> ListModels(const std::optional<std::string>& asked) {
  std::vector<Listed> listed;
  for (const std::string& spec : asked ? std::vector{*asked} : BuiltinModelNames()) {
    RIDGE_ASSIGN_OR_RETURN(ModelFacts facts, DescribeModel(spec));
    RIDGE_ASSIGN_OR_RETURN(const ModelSpec parsed, ParseModelSpec(spec));
    listed.push_back({parsed.name, FindBuiltinModel(parsed.name), std::move(facts)});
  }
  return listed;
}

std::string DocOf(const Listed& listed) {
  for (const ModelVariant& variant : listed.model->variants) {
    if (variant.name == listed.name) return variant.doc;
  }
  return listed.model->doc;
}

std::string InputsText(const ModelFacts& facts) {
  std::string text;
  for (const auto& [name, type] : facts.inputs) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, TypeToString(type));
  }
  return text;
}

std::string FlopsText(double flops) {
  const std::string rate = FormatRate(flops, "FLOP");
  return rate.substr(0, rate.rfind('/'));
}

void PrintOverview(const std::vector<Listed>& listed, const Terminal& terminal) {
  Table table({{"model"},
               {"parameters", Align::kRight},
               {"forward, a sample", Align::kRight},
               {"inputs of a sample"}});
  for (const auto& [name, model, facts] : listed) {
    table.AddRow({facts.name, FormatInteger(facts.parameter_count), FlopsText(facts.sample_flops),
                  InputsText(facts)});
  }
  PrintData(table.ToText(terminal, /*indent=*/0));
}

// "resnet18, resnet34"
std::string NamesTogether(const BuiltinModel& model) {
  std::string names = model.name;
  for (const ModelVariant& variant : model.variants) names += ", " + variant.name;
  return names;
}

void PrintArgumentsOf(const std::string& title, const std::string& doc, const std::string& name,
                      const Terminal& terminal) {
  PrintData(fmt::format("\n{}  {}\n", Styled(title, Style::kBold, terminal), doc));
  Table table({{""}, {""}, {""}});
  for (const ModelParameter& parameter : ParametersOf(name)) {
    table.AddRow(
        {parameter.name, fmt::format("default {}", DefaultText(parameter)), parameter.doc});
  }
  PrintData(table.ToText(terminal, /*indent=*/2));
}

// Of a list, variants stand beside their model; the defaults are the model's.
void PrintArguments(const std::vector<Listed>& listed, const Terminal& terminal) {
  if (listed.size() == 1)
    return PrintArgumentsOf(listed[0].name, DocOf(listed[0]), listed[0].name, terminal);
  for (const BuiltinModel& model : BuiltinModels())
    PrintArgumentsOf(NamesTogether(model), model.doc, model.name, terminal);
}

nlohmann::ordered_json InputsJson(const ModelFacts& facts) {
  nlohmann::ordered_json inputs = nlohmann::ordered_json::array();
  for (const auto& [name, type] : facts.inputs)
    inputs.push_back({{"name", name}, {"dtype", DTypeName(type.dtype)}, {"shape", type.dims}});
  return inputs;
}

nlohmann::ordered_json ArgumentJson(const ModelParameter& parameter) {
  nlohmann::ordered_json json = {{"name", parameter.name}, {"doc", parameter.doc}};
  if (parameter.real) {
    json["default"] = parameter.real->default_value;
    json["minimum"] = parameter.real->least;
    json["maximum"] = parameter.real->most;
  } else if (!parameter.choices.empty()) {
    json["default"] = DefaultText(parameter);
    json["choices"] = parameter.choices;
  } else {
    json["default"] = parameter.default_value;
    json["minimum"] = parameter.minimum;
    json["maximum"] = parameter.maximum;
  }
  return json;
}

nlohmann::ordered_json ArgumentsJson(const std::string& name) {
  nlohmann::ordered_json arguments = nlohmann::ordered_json::array();
  for (const ModelParameter& parameter : ParametersOf(name))
    arguments.push_back(ArgumentJson(parameter));
  return arguments;
}

// The model that a variant is other sizes of; null for a model.
nlohmann::ordered_json VariantOfJson(const Listed& listed) {
  if (listed.name == listed.model->name) return nullptr;
  return listed.model->name;
}

std::string ModelsJson(const std::vector<Listed>& listed) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Listed& entry : listed) {
    const ModelFacts& facts = entry.facts;
    json.push_back({{"model", facts.name},
                    {"doc", DocOf(entry)},
                    {"variant_of", VariantOfJson(entry)},
                    {"parameters", facts.parameter_count},
                    {"flops", facts.sample_flops},
                    {"classes", facts.classes},
                    {"inputs", InputsJson(facts)},
                    {"arguments", ArgumentsJson(entry.name)}});
  }
  return json.dump(1) + "\n";
}

Result<int> RunModels(const ModelsVerb& verb) {
  RIDGE_ASSIGN_OR_RETURN(const Terminal terminal, TerminalFor(stdout, verb.output));
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Listed> listed, ListModels(verb.model));
  if (verb.json) {
    PrintData(ModelsJson(listed));
  } else {
    PrintOverview(listed, terminal);
    PrintArguments(listed, terminal);
  }
  return kExitOk;
}

}  // namespace

VerbBody AddModels(CLI::App& app) {
  auto verb = std::make_shared<ModelsVerb>();
  AddArgument(app, "MODEL", verb->model, "Only this one, with its parameters (gpt:layers=12)");
  AddSwitch(app, "--json", verb->json, "Print JSON")->group(kOutputGroup);
  AddColorFlag(app, verb->output);
  return [verb] { return RunModels(*verb); };
}

}  // namespace ridge::cli
