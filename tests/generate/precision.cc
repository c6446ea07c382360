#include "tests/generate/precision.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ridge/graph/builder.h"
#include "ridge/graph/interpret.h"
#include "ridge/learn/master_params.h"
#include "ridge/lower/pipeline.h"
#include "tests/generate/backend_run.h"
#include "tests/generate/dice.h"
#include "tests/generate/forms.h"
#include "tests/generate/rounding.h"

namespace ridge {
namespace {

constexpr int kSamples = 4, kMoreSamples = 100;
constexpr double kLargestF16 = 3e4;

Tensor Converted(const Tensor& tensor, DType dtype) {
  Tensor to({dtype, tensor.type().dims});
  for (int64_t i = 0; i < to.elements(); ++i)
    StoreFromDouble(dtype, to.mutable_data(), i, tensor.at(i));
  return to;
}

class Retyper {
 public:
  Retyper(const Graph& from, DType dtype, bool mixed, uint64_t seed)
      : from_(from), dtype_(dtype), mixed_(mixed), dice_(seed), b_(from.name) {}

  Result<Graph> Run() {
    for (ValueId id = 0; id < static_cast<ValueId>(from_.values().size()); ++id) CopyLeaf(id);
    for (const Node& node : from_.nodes()) RIDGE_RETURN_IF_ERROR(CopyNode(node));
    for (const GraphOutput& output : from_.outputs())
      b_.Output(output.name, As(map_[output.value], LossDType()));
    for (const GraphUpdate& update : from_.updates()) {
      const Value variable = map_[update.variable];
      b_.Update(variable, As(map_[update.value], variable.dtype()));
    }
    return std::move(b_).Build();
  }

 private:
  DType LossDType() const { return dtype_ == DType::kF64 ? dtype_ : DType::kF32; }
  DType To(DType dtype) const { return dtype == DType::kF64 ? dtype_ : dtype; }

  Value As(Value v, DType dtype) { return IsFloat(v.dtype()) ? Cast(v, dtype) : v; }

  void CopyLeaf(ValueId id) {
    const ValueInfo& info = from_.value(id);
    if (info.kind == ValueKind::kResult) return;
    // Statistics and what norms multiply with are kept in f32.
    const bool wide = info.role == ValueRole::kStatistic || (mixed_ && dice_.Percent(20));
    TensorType type{To(info.type.dtype), info.type.dims};
    if (wide && IsFloat(type.dtype)) type.dtype = LossDType();
    if (info.kind == ValueKind::kConstant) {
      map_[id] = b_.Constant(Converted(info.constant, type.dtype), info.name);
      return;
    }
    Graph& graph = b_.graph();
    Init init = info.init;
    if (init.kind == Init::Kind::kTensor) init.tensor = Converted(init.tensor, type.dtype);
    const ValueId made = info.kind == ValueKind::kInput
                             ? graph.AddInput(info.name, type)
                             : graph.AddVariable(info.kind, info.name, type, std::move(init));
    graph.mutable_value(made).role = info.role;
    graph.mutable_value(made).trainable = info.trainable;
    map_[id] = b_.At(made);
  }

  // Products take a bias of f32 beside short operands.
  static bool HasWideBias(const Node& node) {
    return node.op->name == "matmul" || node.op->name == "conv";
  }

  bool ReadsWide(const Node& node) {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
      return id != kNoValue && from_.value(id).type.dtype == DType::kF64 &&
             map_[id].dtype() != dtype_;
    });
  }

  // All floats in `dtype_`, the first one only, or all in f32: as the operator takes them.  What
  // rounds nothing stays in f32 where it reads f32.
  Status CopyNode(const Node& node) {
    Status status;
    const bool wide = (mixed_ && dice_.Percent(20)) || (IsExact(*node.op) && ReadsWide(node));
    for (int attempt = wide ? 2 : 0; attempt < 3; ++attempt) {
      std::vector<Value> inputs;
      const DType first = attempt == 2 ? LossDType() : dtype_;
      const DType others = attempt == 0 ? dtype_ : LossDType();
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const ValueId id = node.inputs[i];
        const bool wide_bias = mixed_ && i == 2 && attempt == 0 && HasWideBias(node);
        const DType dtype = i == 0 ? first : wide_bias ? LossDType() : others;
        inputs.push_back(id == kNoValue ? Value{} : As(map_[id], dtype));
      }
      status = TryNode(node, inputs, first);
      if (status.ok()) return status;
    }
    return status;
  }

  Status TryNode(const Node& node, const std::vector<Value>& inputs, DType dtype) {
    std::vector<ValueId> ids;
    for (Value v : inputs) ids.push_back(v.id);
    AttrMap attrs = node.attrs;
    for (const char* name : {"to", "dtype"}) {
      if (attrs.contains(name) && attrs.text(name) == "f64")
        attrs[name] = std::string(DTypeName(dtype));
    }
    const std::string name = b_.graph().UniqueName(from_.value(node.outputs[0]).name);
    RIDGE_ASSIGN_OR_RETURN(const NodeId made, b_.graph().AddNode(*node.op, ids, attrs, {name}));
    for (size_t k = 0; k < node.outputs.size(); ++k)
      map_[node.outputs[k]] = b_.At(b_.graph().node(made).outputs[k]);
    return Status();
  }

  const Graph& from_;
  const DType dtype_;
  const bool mixed_;
  Dice dice_;
  GraphBuilder b_;
  std::map<ValueId, Value> map_;
};

bool Overflows(const RoundingModel& model) {
  for (const auto& [name, tensor] : model.exact()) {
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      if (!(std::abs(tensor.at(i)) < kLargestF16)) return true;
    }
  }
  return false;
}

// One graph in one dtype, in the forms and places in which its gradients are computed.
class PrecisionCheck {
 public:
  PrecisionCheck(const Graph& forward, uint64_t seed, const Machine& machine,
                 GraphJudgement& judgement)
      : forward_(forward), dice_(seed), machine_(machine), judgement_(judgement) {}

  Status Run() {
    dtype_ = dice_.OneOf({DType::kF32, DType::kF32, DType::kBF16, DType::kF16, DType::kF64});
    const bool mixed = dice_.Percent(25), imported = dice_.Percent(50);
    RIDGE_ASSIGN_OR_RETURN(narrow_, Retyped(forward_, dtype_, mixed, dice_.Next()));
    // The leaves are rounded once; f64 begins with the same numbers.
    leaves_ = LeavesOf(narrow_);
    RIDGE_ASSIGN_OR_RETURN(const Graph form, GradForm(forward_));
    RIDGE_ASSIGN_OR_RETURN(const RoundingModel model,
                           RoundingModel::Make(form, LeavesAs(forward_, leaves_)));
    model_ = &model;
    if (Overflows(model)) {
      judgement_.not_checked = "a gradient does not fit into f16";
      return Status();
    }
    RIDGE_RETURN_IF_ERROR(CheckGradients());
    return CheckTraining(imported);
  }

 private:
  Status CheckGradients() {
    RIDGE_ASSIGN_OR_RETURN(const Graph form, GradForm(narrow_));
    RIDGE_ASSIGN_OR_RETURN(const PassSelection all, ParsePassSpec(""));
    RIDGE_ASSIGN_OR_RETURN(const Graph after, RunPasses(form, all, machine_.backend->rules()));
    RIDGE_ASSIGN_OR_RETURN(const std::vector<Tensor> values, EvaluateGraph(after, leaves_));
    NamedTensors got;
    for (const GraphOutput& output : after.outputs())
      got[output.name] = values[static_cast<size_t>(output.value)];
    Compare("references", got, false);
    RIDGE_ASSIGN_OR_RETURN(got, RunOutputs(form, leaves_, machine_));
    Compare("cpu", got, false);
    return Status();
  }

  Status CheckTraining(bool imported) {
    RIDGE_ASSIGN_OR_RETURN(const Graph masters, WithMasterParams(narrow_));
    RIDGE_ASSIGN_OR_RETURN(const Graph step, TrainForm(masters, "", imported));
    NamedTensors given = LeavesAs(step, leaves_);
    AddStepInputs(step, given);
    RIDGE_ASSIGN_OR_RETURN(const NamedTensors after, RunStep(step, given, "", machine_));
    Compare("training on cpu", GradientsOfStep(given, after), true);
    return Status();
  }

  void Compare(const char* where, const NamedTensors& got, bool stepped) {
    if (judgement_.finding) return;
    const Roundoff roundoff = RoundoffOf(dtype_);
    std::string wrong = FirstOutside(*model_, roundoff, kSamples, got, stepped);
    if (!wrong.empty()) wrong = FirstOutside(*model_, roundoff, kMoreSamples, got, stepped);
    if (!wrong.empty())
      judgement_.finding = {fmt::format("precision {} {}", DTypeName(dtype_), where), wrong};
  }

  const Graph& forward_;
  Dice dice_;
  const Machine& machine_;
  GraphJudgement& judgement_;
  DType dtype_ = DType::kF32;
  Graph narrow_;
  NamedTensors leaves_;
  const RoundingModel* model_ = nullptr;
};

}  // namespace

Result<Graph> Retyped(const Graph& forward, DType dtype, bool mixed, uint64_t seed) {
  return Retyper(forward, dtype, mixed, seed).Run();
}

Status CheckPrecision(const Graph& forward, uint64_t seed, const Machine& machine,
                      GraphJudgement& judgement) {
  return PrecisionCheck(forward, seed, machine, judgement).Run();
}

}  // namespace ridge
