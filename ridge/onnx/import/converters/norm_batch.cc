// ONNX converter: BatchNormalization.
//
// An inference export becomes trainable: in training the node uses the batch's own statistics and
// updates the running ones, as PyTorch does (unbiased variance).  A node that says training_mode=1
// keeps ONNX's own rule (biased variance).  ONNX's momentum weighs the old value.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/norm.h"
#include "ridge/graph/ops/shared/reduce.h"
#include "ridge/onnx/import/converters/norm.h"

namespace ridge {
namespace {

// What one call works on, as our operators want it.
struct BatchCall {
  Value x, scale, shift;
  double epsilon = 1e-5;
  double momentum = 0.9;  // of the old value
  DType statistic = DType::kF32;
};

// x [N] counts as [N,1].
Value AtLeastTwoDims(GraphBuilder& b, Value x) {
  if (!b.ok() || x.rank() != 1) return x;
  return ReshapeExactly(x, {x.dims()[0], 1});
}

Result<BatchCall> ReadCall(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(NeedFloat(n, 1));
  RIDGE_RETURN_IF_ERROR(n.Need(5));
  if (n.integer("spatial", 1) == 0) return n.Unsupported("spatial=0 (opset 7) is not supported");
  GraphBuilder& b = n.b();
  BatchCall call;
  call.x = AtLeastTwoDims(b, n[0]);
  call.epsilon = Epsilon(n);
  call.momentum = n.number("momentum", 0.9);
  call.statistic = StatisticDType(n.type(0).dtype);
  const Value scale = n[1], shift = n[2];
  call.scale = Cast(scale, call.statistic);
  call.shift = Cast(shift, call.statistic);
  return call;
}

// The value that `variable` will hold; itself while it has no update.
Value Pending(GraphBuilder& b, Value variable) {
  for (const GraphUpdate& update : b.graph().updates()) {
    if (update.variable == variable.id) return b.At(update.value);
  }
  return variable;
}

// Replaces the update of `variable`, or adds one.
void SetUpdate(GraphBuilder& b, Value variable, Value value) {
  if (!b.ok()) return;
  std::vector<GraphUpdate> updates = b.graph().updates();
  const auto found = std::find_if(updates.begin(), updates.end(), [&](const GraphUpdate& update) {
    return update.variable == variable.id;
  });
  if (found == updates.end()) {
    b.Update(variable, value);
    return;
  }
  found->value = value.id;
  b.graph().ClearUpdates();
  for (const GraphUpdate& update : updates) b.graph().AddUpdate(update.variable, update.value);
}

// momentum * old + (1 - momentum) * correction * statistic, in old's dtype.
Value RunningAverage(GraphBuilder& b, const BatchCall& call, Value old, Value statistic,
                     double correction) {
  const Value wide = Cast(old, call.statistic);
  const Value fresh = statistic * ((1 - call.momentum) * correction);
  const Value sum = wide * call.momentum + fresh;
  return b.ok() ? Cast(sum, old.dtype()) : Value{};
}

// A state may be shared by several nodes (one module called twice): each goes on from what the one
// before it leaves.  A state made by this node has no update yet, and is not searched for.
Value UpdateRunning(OnnxNode& n, const BatchCall& call, size_t input, Value statistic,
                    double correction) {
  GraphBuilder& b = n.b();
  const auto before = static_cast<ValueId>(b.graph().values().size());
  const Value state = n.Statistic(input);
  if (!n.ok() || !state.valid()) return {};
  const bool fresh = state.id >= before;
  const Value old = fresh ? state : Pending(b, state);
  const Value now = RunningAverage(b, call, old, statistic, correction);
  if (!n.ok() || b.graph().value(state.id).kind != ValueKind::kState) return now;
  if (fresh) {
    b.Update(state, now);
  } else {
    SetUpdate(b, state, now);
  }
  return now;
}

Status NeedTwoPerChannel(OnnxNode& n, int64_t per_channel) {
  if (per_channel >= 2) return Status();
  return n.Error(
      fmt::format("input 0 is {}: {} value per channel, training needs at least 2; "
                  "hint: a larger batch or image, or --batch-norm frozen",
                  TypeToString(n.type(0)), per_channel));
}

void SetOutputs(OnnxNode& n, Value y, Value mean, Value var) {
  if (n.ok()) n.Set(0, ReshapeExactly(y, n.dims(0)));
  n.Set(1, mean);
  n.Set(2, var);
  n.Set(3, mean);  // saved_mean and saved_var of opsets before 14: hints for a backward pass
  n.Set(4, var);
}

Status ConvertWithBatchStatistics(OnnxNode& n, const BatchCall& call, bool by_the_file) {
  GraphBuilder& b = n.b();
  const int64_t per_channel = ElementsPerChannel(call.x.dims());
  if (n.training()) RIDGE_RETURN_IF_ERROR(NeedTwoPerChannel(n, per_channel));
  const std::vector<Value> out =
      OpOutputs("batch_norm", {call.x, call.scale, call.shift}, {{"epsilon", call.epsilon}});
  const auto count = static_cast<double>(per_channel);
  const double correction = by_the_file ? 1 : count / (count - 1);
  Value mean, var;
  if (n.training()) {
    mean = UpdateRunning(n, call, 3, out[1], 1);
    var = UpdateRunning(n, call, 4, out[2], correction);
  } else {
    mean = RunningAverage(b, call, n[3], out[1], 1);
    var = RunningAverage(b, call, n[4], out[2], correction);
  }
  SetOutputs(n, out[0], mean, var);
  return n.status();
}

}  // namespace

Status ConvertBatchNormalization(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const BatchCall call, ReadCall(n));
  const bool by_the_file = n.integer("training_mode", 0) != 0;
  const bool frozen = n.training() && n.batch_norm_frozen();
  if (!frozen && (n.training() || by_the_file)) {
    return ConvertWithBatchStatistics(n, call, by_the_file);
  }
  const Value mean = n.Statistic(3), var = n.Statistic(4);
  const Value y =
      Op("batch_norm_inference",
         {call.x, call.scale, call.shift, Cast(mean, call.statistic), Cast(var, call.statistic)},
         {{"epsilon", call.epsilon}});
  SetOutputs(n, y, mean, var);
  return n.status();
}

}  // namespace ridge
