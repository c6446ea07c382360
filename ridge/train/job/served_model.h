// ServedGraphs: the inference graphs of a model that is to be served, and what they take on a
// device, by the same passes and the same planner as any other step.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "ridge/graph/named_graph.h"
#include "ridge/plan/choose/serving.h"
#include "ridge/train/options/machine.h"

namespace ridge {

struct ServedGraphs {
  std::string name;
  int64_t weight_bytes = 0;  // parameters and statistics
  NamedGraph infer;          // of a batch; of a language model of one prompt
  // Of a language model: a token of each sequence behind the prompt, and the last one.
  std::optional<NamedGraph> first_token, last_token;
};

// The tokens that a language model is asked for where the user says nothing: 512 and 128, or less
// in a shorter context.  None for other models.
std::optional<TokenCounts> UsualTokens(const std::string& model);

// `stored`: the type of the weights: f32, bf16 or f16 (learn/narrow_form.h).  `dims` as in
// ModelRequest.
// Fails as LoadModel does; with kInvalidArgument when the model has no such context, or tokens are
// given for what writes none.
Result<ServedGraphs> LoadServedGraphs(const ServedModel& model, DType stored,
                                      const std::map<std::string, int64_t>& dims);

// Fails as PlanProgram does.  `precision`: of `machine`.
Result<ModelCost> PlanServed(const ServedGraphs& graphs, const std::string& precision,
                             const Machine& machine);

}  // namespace ridge
