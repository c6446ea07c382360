// ModelArguments: the "hidden=256,layers=3" of a model's spec, checked against what it takes.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

// One integer that a built-in model takes.
struct ModelParameter {
  std::string name;
  std::string doc;
  int64_t default_value = 0;
  int64_t minimum = 1;
  int64_t maximum = 1 << 20;
};

// "mlp:hidden=256,layers=3" in parts, unchecked.
struct ModelSpec {
  std::string name;
  std::vector<std::pair<std::string, std::string>> arguments;
};
// Fails with kInvalidModel when an argument is not key=value.
Result<ModelSpec> ParseModelSpec(std::string_view spec);

class ModelArguments {
 public:
  // Every parameter of `known`, with its default where the spec does not give it.
  // Fails with kInvalidModel: unknown or double name, not an integer, out of range.
  static Result<ModelArguments> Check(const ModelSpec& spec,
                                      const std::vector<ModelParameter>& known);
  // What stands before the colon: the name of the model, or of a variant.
  const std::string& model() const { return model_; }
  // REQUIRES: `name` was in `known`.
  int64_t operator[](const std::string& name) const { return values_.at(name); }

 private:
  std::string model_;
  std::map<std::string, int64_t> values_;
};

}  // namespace ridge
