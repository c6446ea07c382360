// ModelArguments: the "hidden=256,layers=3" of a model's spec, checked against what it takes.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

struct RealRange {
  double default_value = 0;
  double least = 0, most = 1;
};

// One value that a built-in model takes: an integer, one of several names, or a real number.
struct ModelParameter {
  std::string name;
  std::string doc;
  int64_t default_value = 0;
  int64_t minimum = 1;
  int64_t maximum = 1 << 20;
  std::vector<std::string> choices = {};  // the names of 0, 1, ...; specs have the name
  std::optional<RealRange> real = {};     // then the integers above mean nothing
};
// "256", "gelu", "1e-12"
std::string DefaultText(const ModelParameter& parameter);

// "mlp:hidden=256,layers=3" in parts, unchecked.
struct ModelSpec {
  std::string name;  // "mlp"; of "gpt:175b,context=1024": "gpt:175b", a size
  std::vector<std::pair<std::string, std::string>> arguments;
};
// Fails with kInvalidModel when an argument is not key=value.
Result<ModelSpec> ParseModelSpec(std::string_view spec);
// As it is written.
std::string ModelSpecText(const ModelSpec& spec);

class ModelArguments {
 public:
  // Every parameter of `known`, with its default where the spec does not give it.
  // Fails with kInvalidModel: unknown or double name, not a number, out of range, no choice.
  static Result<ModelArguments> Check(const ModelSpec& spec,
                                      const std::vector<ModelParameter>& known);
  // What stands before the colon: the name of the model, or of a variant.
  const std::string& model() const { return model_; }
  // REQUIRES of all: `name` was in `known`, and of this kind.
  int64_t operator[](const std::string& name) const { return values_.at(name); }
  double Real(const std::string& name) const { return reals_.at(name); }
  // The name that was chosen.
  const std::string& Choice(const std::string& name) const { return choices_.at(name); }

 private:
  std::string model_;
  Status Take(const ModelParameter& parameter, const std::string& text);

  std::map<std::string, int64_t> values_;  // of a choice: its place
  std::map<std::string, double> reals_;
  std::map<std::string, std::string> choices_;
};

}  // namespace ridge
