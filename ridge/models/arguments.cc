#include "ridge/models/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "ridge/graph/suggest.h"

namespace ridge {
namespace {

Status Invalid(const std::string& model, const std::string& text) {
  return Status(ErrorCode::kInvalidModel, fmt::format("model '{}': {}", model, text));
}

const ModelParameter* Find(const std::vector<ModelParameter>& known, const std::string& name) {
  for (const ModelParameter& parameter : known) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

Status UnknownParameter(const std::string& model, const std::string& name,
                        const std::vector<ModelParameter>& known) {
  std::vector<std::string> names;
  for (const ModelParameter& parameter : known) names.push_back(parameter.name);
  return Invalid(model, fmt::format("no parameter '{}'{} (it takes: {})", name,
                                    DidYouMean(name, names), fmt::join(names, ", ")));
}

Result<int64_t> ParseInteger(const std::string& model, const ModelParameter& parameter,
                             const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return Invalid(model, fmt::format("{} is '{}'; it must be an integer", parameter.name, text));
  if (value < parameter.minimum || value > parameter.maximum) {
    return Invalid(model, fmt::format("{} is {}; it must be from {} to {}", parameter.name, value,
                                      parameter.minimum, parameter.maximum));
  }
  return value;
}

Result<double> ParseReal(const std::string& model, const ModelParameter& parameter,
                         const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return Invalid(model, fmt::format("{} is '{}'; it must be a number", parameter.name, text));
  if (!(value >= parameter.real->least && value <= parameter.real->most)) {
    return Invalid(model, fmt::format("{} is {}; it must be from {} to {}", parameter.name, value,
                                      parameter.real->least, parameter.real->most));
  }
  return value;
}

}  // namespace

std::string DefaultText(const ModelParameter& parameter) {
  if (parameter.real) return fmt::format("{}", parameter.real->default_value);
  if (parameter.choices.empty()) return fmt::format("{}", parameter.default_value);
  return parameter.choices[static_cast<size_t>(parameter.default_value)];
}

namespace {

// Where the name ends: "gpt:175b,context=1024" -> at the comma, a size begins with a digit.
size_t EndOfName(std::string_view spec) {
  const size_t colon = spec.find(':');
  if (colon == std::string_view::npos || colon + 1 == spec.size()) return colon;
  const size_t comma = spec.find(',', colon);
  const std::string_view first = spec.substr(colon + 1, comma - colon - 1);
  const bool is_size =
      first.find('=') == std::string_view::npos && first[0] >= '0' && first[0] <= '9';
  return is_size ? comma : colon;
}

}  // namespace

Result<ModelSpec> ParseModelSpec(std::string_view spec) {
  ModelSpec result;
  const size_t end = EndOfName(spec);
  result.name = spec.substr(0, end);
  if (end == std::string_view::npos) return result;
  std::string_view rest = spec.substr(end + 1);
  while (true) {
    const size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return Invalid(result.name,
                     fmt::format("'{}' is not key=value. hint: write {}{}key=value,key=value", part,
                                 result.name, spec[end]));
    }
    result.arguments.emplace_back(part.substr(0, equals), part.substr(equals + 1));
    if (comma == std::string_view::npos) return result;
    rest = rest.substr(comma + 1);
  }
}

std::string ModelSpecText(const ModelSpec& spec) {
  std::string text = spec.name;
  for (const auto& [key, value] : spec.arguments) {
    text += text.find(':') == std::string::npos ? ":" : ",";
    text += key + "=" + value;
  }
  return text;
}

Result<ModelArguments> ModelArguments::Check(const ModelSpec& spec,
                                             const std::vector<ModelParameter>& known) {
  ModelArguments result;
  result.model_ = spec.name;
  for (const ModelParameter& parameter : known)
    RIDGE_RETURN_IF_ERROR(result.Take(parameter, DefaultText(parameter)));
  std::set<std::string> given;
  for (const auto& [name, text] : spec.arguments) {
    const ModelParameter* parameter = Find(known, name);
    if (parameter == nullptr) return UnknownParameter(spec.name, name, known);
    if (!given.insert(name).second) return Invalid(spec.name, name + " is given twice");
    RIDGE_RETURN_IF_ERROR(result.Take(*parameter, text));
  }
  return result;
}

Status ModelArguments::Take(const ModelParameter& parameter, const std::string& text) {
  const std::vector<std::string>& choices = parameter.choices;
  if (parameter.real) {
    RIDGE_ASSIGN_OR_RETURN(reals_[parameter.name], ParseReal(model_, parameter, text));
    return Status();
  }
  if (choices.empty()) {
    RIDGE_ASSIGN_OR_RETURN(values_[parameter.name], ParseInteger(model_, parameter, text));
    return Status();
  }
  const auto found = std::find(choices.begin(), choices.end(), text);
  if (found == choices.end()) {
    return Invalid(model_, fmt::format("{} is '{}'; it must be one of {}", parameter.name, text,
                                       fmt::join(choices, ", ")));
  }
  values_[parameter.name] = found - choices.begin();
  choices_[parameter.name] = text;
  return Status();
}

}  // namespace ridge
