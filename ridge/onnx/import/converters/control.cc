// ONNX converters: If, Loop, Scan.
//
// Conditions and trip counts that are known before planning unroll.  An If on data computes both
// branches and selects; a Loop with a known bound whose condition depends on data computes all
// trips and keeps the values of the last one that was wanted.
#include <fmt/format.h>

#include "onnx/onnx-ml.pb.h"
#include "ridge/graph/ops/shared/reduce.h"
#include "ridge/onnx/import/converter.h"
#include "ridge/onnx/import/importer.h"

namespace ridge {
namespace {

constexpr int64_t kMostTrips = 100'000;

Result<const onnx::GraphProto*> Body(const OnnxNode& n, const char* name) {
  const onnx::GraphProto* body = n.subgraph(name);
  if (body != nullptr) return body;
  return n.Error(fmt::format("has no attribute '{}', a graph", name));
}

// What is known of a value: constants only.
const Tensor* KnownValue(OnnxNode& n, Value v) {
  const ValueInfo& info = n.b().graph().value(v.id);
  return info.kind == ValueKind::kConstant && info.constant.elements() > 0 ? &info.constant
                                                                           : nullptr;
}

Result<Value> Select(OnnxNode& n, Value condition, Value a, Value b);

// Element by element; both lists must be equally long.
Result<Value> SelectSequence(OnnxNode& n, Value condition, const std::vector<Value>& a,
                             const std::vector<Value>& b) {
  if (a.size() != b.size())
    return n.Unsupported(
        fmt::format("the condition depends on data, and a result is a sequence of {} or {} tensors",
                    a.size(), b.size()));
  std::vector<Value> elements;
  for (size_t i = 0; i < a.size(); ++i) {
    RIDGE_ASSIGN_OR_RETURN(const Value element, Select(n, condition, a[i], b[i]));
    elements.push_back(element);
  }
  return n.importer().AddSequence(std::move(elements));
}

// where(condition, a, b) for a condition of one element.
Result<Value> Select(OnnxNode& n, Value condition, Value a, Value b) {
  if (a == b) return a;
  const std::vector<Value>* list_a = n.importer().SequenceOf(a);
  const std::vector<Value>* list_b = n.importer().SequenceOf(b);
  if (list_a != nullptr && list_b != nullptr) return SelectSequence(n, condition, *list_a, *list_b);
  if (list_a != nullptr || list_b != nullptr)
    return n.Error("a result is a tensor or a sequence; it must be the same in both cases");
  if (a.type() != b.type()) {
    return n.Unsupported(fmt::format("the condition depends on data, and a result is {} or {}",
                                     TypeToString(a.type()), TypeToString(b.type())));
  }
  return Where(Reshape(condition, {}), a, b);
}

// A branch that is computed whatever the condition will be.  The one that is never taken may not
// even have valid shapes.
Result<std::vector<Value>> Branch(OnnxNode& n, const onnx::GraphProto& body) {
  Result<std::vector<Value>> results = n.importer().Inline(body, {});
  if (results.ok()) return results;
  const std::string file = n.importer().model().name() + ": ";
  const std::string& message = results.status().message();
  return n.Unsupported(
      fmt::format("the condition depends on data, so both branches are computed; one can't be: {}",
                  message.starts_with(file) ? message.substr(file.size()) : message));
}

Status ConvertIf(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const onnx::GraphProto* then_body, Body(n, "then_branch"));
  RIDGE_ASSIGN_OR_RETURN(const onnx::GraphProto* else_body, Body(n, "else_branch"));
  std::vector<Value> results;
  if (const Tensor* known = n.ConstantInput(0); known != nullptr && known->elements() == 1) {
    RIDGE_ASSIGN_OR_RETURN(results,
                           n.importer().Inline(known->at(0) != 0 ? *then_body : *else_body, {}));
  } else {
    if (n.dims(0).size() > 1 || ElementCount(n.dims(0)) != 1)
      return n.Error(
          fmt::format("the condition is {}; it must be one bool", TypeToString(n.type(0))));
    RIDGE_ASSIGN_OR_RETURN(results, Branch(n, *then_body));
    RIDGE_ASSIGN_OR_RETURN(const std::vector<Value> other, Branch(n, *else_body));
    if (results.size() != other.size()) return n.Error("the branches differ in number of outputs");
    for (size_t i = 0; i < results.size(); ++i) {
      RIDGE_ASSIGN_OR_RETURN(results[i], Select(n, n[0], results[i], other[i]));
    }
  }
  if (results.size() < n.output_count())
    return n.Error(
        fmt::format("a branch has {} outputs; {} are wanted", results.size(), n.output_count()));
  for (size_t i = 0; i < results.size(); ++i) n.Set(i, results[i]);
  return n.status();
}

// [a, b, ..] of one type -> stacked along a new axis.
Result<Value> Stack(OnnxNode& n, const std::vector<Value>& parts, int64_t axis) {
  if (parts.empty()) return n.Unsupported("a loop without trips stacks nothing");
  std::vector<Value> wide;
  for (Value part : parts) {
    Dims dims = part.dims();
    RIDGE_ASSIGN_OR_RETURN(const int64_t at, n.Axis(axis, static_cast<int>(dims.size()) + 1));
    dims.insert(dims.begin() + at, 1);
    wide.push_back(ReshapeExactly(part, dims));
    axis = at;
  }
  return Concat(wide, axis);
}

struct LoopState {
  std::vector<Value> carried;
  std::vector<std::vector<Value>> scanned;
  Value active;  // a bool that depends on data; invalid while the condition is known
};

// One trip; false when the condition is known to have ended the loop.
Result<bool> Trip(OnnxNode& n, const onnx::GraphProto& body, int64_t trip, LoopState& state) {
  Value condition = n.b().Constant(Tensor::Scalar(DType::kBool, 1));
  if (state.active.valid()) condition = state.active;
  std::vector<Value> inputs = {
      n.b().Constant(Tensor::Scalar(DType::kI64, static_cast<double>(trip))), condition};
  inputs.insert(inputs.end(), state.carried.begin(), state.carried.end());
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Value> results, n.importer().Inline(body, inputs));
  const size_t count = state.carried.size();
  if (results.size() < 1 + count) return n.Error("the body gives too few outputs");
  for (size_t i = 0; i < count; ++i) {
    if (state.active.valid()) {
      RIDGE_ASSIGN_OR_RETURN(state.carried[i],
                             Select(n, state.active, results[1 + i], state.carried[i]));
    } else {
      state.carried[i] = results[1 + i];
    }
  }
  state.scanned.resize(results.size() - 1 - count);
  for (size_t i = 0; i < state.scanned.size(); ++i)
    state.scanned[i].push_back(results[1 + count + i]);
  if (const Tensor* known = KnownValue(n, results[0]); known != nullptr) return known->at(0) != 0;
  if (!state.scanned.empty())
    return n.Unsupported("the condition depends on data, and so does the length of a scan output");
  state.active = state.active.valid() ? And(state.active, results[0]) : Reshape(results[0], {});
  return true;
}

Status ConvertLoop(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const onnx::GraphProto* body, Body(n, "body"));
  int64_t trips = kMostTrips + 1;
  if (n.has_input(0)) {
    RIDGE_ASSIGN_OR_RETURN(trips, n.ConstantInt(0, "the trip count"));
  }
  bool go = true;
  if (n.has_input(1)) {
    RIDGE_ASSIGN_OR_RETURN(go, n.ConstantInt(1, "the first condition"));
  }
  LoopState state;
  for (size_t i = 2; i < n.input_count(); ++i) state.carried.push_back(n.TensorOrSequence(i));
  RIDGE_RETURN_IF_ERROR(n.status());
  for (int64_t trip = 0; go && trip < trips; ++trip) {
    const bool unbounded = !n.has_input(0) && state.active.valid();
    if (trip >= kMostTrips || unbounded)
      return n.Unsupported("the number of trips depends on data; a bound must be known");
    RIDGE_RETURN_IF_ERROR(n.importer().ChargeUnrollBudget(1));
    RIDGE_ASSIGN_OR_RETURN(go, Trip(n, *body, trip, state));
  }
  const size_t count = state.carried.size();
  for (size_t i = 0; i < count; ++i) n.Set(i, state.carried[i]);
  for (size_t i = 0; count + i < n.output_count(); ++i) {
    RIDGE_ASSIGN_OR_RETURN(
        const Value stacked,
        Stack(n, i < state.scanned.size() ? state.scanned[i] : std::vector<Value>(), 0));
    n.Set(count + i, stacked);
  }
  return n.status();
}

int64_t At(const std::vector<int64_t>& list, size_t i) { return i < list.size() ? list[i] : 0; }

// Element k of x along axis, which goes away.
Value Take(OnnxNode& n, Value x, int64_t axis, int64_t k) {
  const Value index = n.b().Constant(Tensor::Scalar(DType::kI64, static_cast<double>(k)));
  return Gather(x, index, axis);
}

struct ScanFacts {
  size_t states = 0, inputs = 0;
  int64_t length = 0;
  std::vector<int64_t> input_axes, input_directions, output_axes, output_directions;
};

Result<ScanFacts> ReadScan(OnnxNode& n) {
  ScanFacts facts;
  const int64_t inputs = n.integer("num_scan_inputs", 0);
  if (inputs < 1 || inputs > static_cast<int64_t>(n.input_count()))
    return n.Error(
        fmt::format("num_scan_inputs is {}; there are {} inputs", inputs, n.input_count()));
  facts.inputs = static_cast<size_t>(inputs);
  facts.states = n.input_count() - facts.inputs;
  facts.input_axes = n.integers("scan_input_axes");
  facts.input_directions = n.integers("scan_input_directions");
  facts.output_axes = n.integers("scan_output_axes");
  facts.output_directions = n.integers("scan_output_directions");
  facts.input_axes.resize(facts.inputs, 0);
  for (size_t i = 0; i < facts.inputs; ++i) {
    const Dims dims = n.dims(facts.states + i);
    RIDGE_ASSIGN_OR_RETURN(facts.input_axes[i],
                           n.Axis(facts.input_axes[i], static_cast<int>(dims.size())));
    const int64_t length = dims[static_cast<size_t>(facts.input_axes[i])];
    if (i > 0 && length != facts.length)
      return n.Error(fmt::format("scan inputs have lengths {} and {}", facts.length, length));
    facts.length = length;
  }
  return facts;
}

// Opset 9 and later; `batch_axis` of opset 8 is handled by ConvertScan.
Result<std::vector<Value>> RunScan(OnnxNode& n, const onnx::GraphProto& body,
                                   const ScanFacts& facts, const std::vector<Value>& given) {
  std::vector<Value> states(given.begin(), given.begin() + static_cast<int64_t>(facts.states));
  std::vector<std::vector<Value>> scanned;
  for (int64_t t = 0; t < facts.length; ++t) {
    RIDGE_RETURN_IF_ERROR(n.importer().ChargeUnrollBudget(1));
    std::vector<Value> inputs = states;
    for (size_t i = 0; i < facts.inputs; ++i) {
      const int64_t k = At(facts.input_directions, i) != 0 ? facts.length - 1 - t : t;
      inputs.push_back(Take(n, given[facts.states + i], facts.input_axes[i], k));
    }
    RIDGE_ASSIGN_OR_RETURN(const std::vector<Value> results, n.importer().Inline(body, inputs));
    if (results.size() < facts.states) return n.Error("the body gives too few outputs");
    std::copy_n(results.begin(), facts.states, states.begin());
    scanned.resize(results.size() - facts.states);
    for (size_t i = 0; i < scanned.size(); ++i) scanned[i].push_back(results[facts.states + i]);
  }
  for (size_t i = 0; i < scanned.size(); ++i) {
    if (At(facts.output_directions, i) != 0) std::reverse(scanned[i].begin(), scanned[i].end());
    RIDGE_ASSIGN_OR_RETURN(const Value stacked, Stack(n, scanned[i], At(facts.output_axes, i)));
    states.push_back(stacked);
  }
  return states;
}

Status ConvertScan(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const onnx::GraphProto* body, Body(n, "body"));
  if (n.opset() < 9) return n.Unsupported("Scan of opset 8 is not read; opset 9 and later are");
  RIDGE_RETURN_IF_ERROR(n.Need(n.input_count()));
  RIDGE_ASSIGN_OR_RETURN(const ScanFacts facts, ReadScan(n));
  const std::vector<Value> given = n.inputs();
  RIDGE_RETURN_IF_ERROR(n.status());
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Value> results, RunScan(n, *body, facts, given));
  for (size_t i = 0; i < results.size(); ++i) n.Set(i, results[i]);
  return n.status();
}

constexpr OnnxConverter kConverters[] = {
    {"", "If", ConvertIf, 1},
    {"", "Loop", ConvertLoop},
    {"", "Scan", ConvertScan},
};

}  // namespace

std::span<const OnnxConverter> OnnxControlConverters() { return kConverters; }

}  // namespace ridge
