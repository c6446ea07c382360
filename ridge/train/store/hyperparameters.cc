#include "ridge/train/store/hyperparameters.h"

#include <nlohmann/json.hpp>

namespace ridge {
namespace {

constexpr const char* kShown[] = {"model",      "data",         "loss",      "batch",
                                  "accumulate", "epochs",       "steps",     "optimizer",
                                  "lr",         "momentum",     "schedule",  "warmup",
                                  "clip-norm",  "weight-decay", "precision", "seed"};

}  // namespace

std::vector<Hyperparameter> HyperparametersOf(const TrainOptions& options) {
  const auto json = nlohmann::json::parse(OptionsToJson(options));
  std::vector<Hyperparameter> shown;
  for (const char* key : kShown) {
    const auto found = json.find(key);
    if (found == json.end()) continue;
    if (found->is_boolean()) shown.push_back({key, found->get<bool>()});
    if (found->is_number()) shown.push_back({key, found->get<double>()});
    if (found->is_string() && !found->get_ref<const std::string&>().empty())
      shown.push_back({key, found->get<std::string>()});
  }
  return shown;
}

}  // namespace ridge
