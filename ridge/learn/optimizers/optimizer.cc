#include "ridge/learn/optimizers/optimizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "ridge/graph/suggest.h"

namespace ridge {
namespace {

Status CheckOptions(const OptimizerOptions& options) {
  const double decay = options.weight_decay.value_or(0);
  if (!(decay >= 0) || !std::isfinite(decay))
    return InvalidArgument(fmt::format("--weight-decay is {}; it must be 0 or more", decay));
  if (!(options.momentum >= 0 && options.momentum < 1))
    return InvalidArgument(
        fmt::format("--momentum is {}; it must be from 0 to below 1", options.momentum));
  if (options.momentum != 0 && options.name != "sgd") {
    return InvalidArgument(
        fmt::format("--momentum is for --optimizer sgd; {} keeps its own averages", options.name));
  }
  if (options.state != "f32" && options.name == "sgd" && options.momentum == 0) {
    return InvalidArgument(fmt::format(
        "--optimizer-state is {}; sgd without --momentum keeps no state. hint: leave it out",
        options.state));
  }
  return Status();
}

}  // namespace

const std::vector<Optimizer>& AllOptimizers() {
  static const std::vector<Optimizer> kOptimizers = {SgdOptimizer(), AdamOptimizer(),
                                                     AdamWOptimizer()};
  return kOptimizers;
}

Result<const Optimizer*> FindOptimizer(const OptimizerOptions& options) {
  std::vector<std::string> names;
  for (const Optimizer& optimizer : AllOptimizers()) {
    names.push_back(optimizer.name);
    if (optimizer.name != options.name) continue;
    RIDGE_RETURN_IF_ERROR(CheckOptions(options));
    return &optimizer;
  }
  return InvalidArgument(fmt::format("no optimizer '{}'{} (there are: {})", options.name,
                                     DidYouMean(options.name, names), fmt::join(names, ", ")));
}

Value OptimizerState(GraphBuilder& b, Value param, const std::string& suffix) {
  return b.ok() ? OptimizerState(b, param, suffix, param.type()) : Value();
}

Value OptimizerState(GraphBuilder& b, Value param, const std::string& suffix,
                     const TensorType& type) {
  if (!b.ok()) return {};
  const std::string name = b.graph().value(param.id).name + "." + suffix;
  return b.State(name, type, Init::Zeros(), ValueRole::kOptimizer);
}

}  // namespace ridge
