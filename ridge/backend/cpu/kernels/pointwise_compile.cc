// From operators to tile steps.
//
// Registers: one for each input, then one for each live intermediate; a register is used again when
// its value has been read for the last time.  An f32 output is computed straight into its memory.
// Casts between what is loaded and f32, and between f32 and what is stored, are done by the load
// and the store: they are no steps. A blocked tensor nChw16c is the row-major array [B, C/16, H, W,
// 16], so one kind of broadcasting serves both.
#include "ridge/backend/cpu/kernels/pointwise.h"
#include "ridge/core/rounding.h"

namespace ridge::cpu {
namespace {

bool StoredAsFloat(DType t) {
  return t == DType::kF32 || t == DType::kBF16 || t == DType::kF16 || t == DType::kBool;
}
bool ExactAsFloat(DType t) { return StoredAsFloat(t) || t == DType::kU8 || t == DType::kI8; }

// Wide integers and f64 lose digits in f32; only a cast to f32 may read them.
bool OperandsFit(const ExpressionStep& step, const OpCall& call, DType to) {
  for (const ExpressionOperand& operand : step.operands) {
    if (operand.is_step) continue;
    const DType from = call.inputs[static_cast<size_t>(operand.index)].dtype;
    const bool rounds_once = step.op->name == "cast" && to == DType::kF32;
    if (!ExactAsFloat(from) && !rounds_once) return false;
  }
  return true;
}

class Compiler {
 public:
  Compiler(const Expression& expression, const ExpressionTypes& types, const OpCall& call)
      : expression_(expression), types_(types), call_(call) {}

  const char* Compile(PointwiseProgram& program) {
    registers_ = static_cast<int>(call_.inputs.size());
    FindLastUses();
    for (size_t s = 0; s < expression_.steps.size(); ++s) {
      if (const char* reason = AddStep(s, program); reason != nullptr) return reason;
    }
    for (size_t o = 0; o < expression_.outputs.size(); ++o) AddOutput(o, program);
    program.registers = registers_;
    return nullptr;
  }

 private:
  void FindLastUses() {
    const size_t count = expression_.steps.size();
    last_use_.assign(count, 0);
    read_by_step_.assign(count, false);
    for (size_t s = 0; s < count; ++s) {
      for (const ExpressionOperand& operand : expression_.steps[s].operands) NoteUse(operand, s);
    }
    for (const int32_t step : expression_.outputs) last_use_[static_cast<size_t>(step)] = count;
    for (size_t s = 0; s < count; ++s) {
      if (CastsInStore(s)) NoteUse(expression_.steps[s].operands[0], count);
    }
  }

  void NoteUse(const ExpressionOperand& operand, size_t s) {
    if (operand.is_step) {
      last_use_[static_cast<size_t>(operand.index)] = s;
      if (s < expression_.steps.size()) read_by_step_[static_cast<size_t>(operand.index)] = true;
    } else {
      last_input_use_ = s;
    }
  }

  bool IsOutput(size_t s) const { return last_use_[s] == expression_.steps.size(); }

  // A cast to f32 of what is f32 in its register.
  bool CastsInLoad(size_t s) const {
    const ExpressionStep& step = expression_.steps[s];
    return step.op->name == "cast" && types_.steps[s] == DType::kF32 && !IsOutput(s) &&
           !step.operands[0].is_step;
  }

  // A cast of f32 that nobody reads but the output.
  bool CastsInStore(size_t s) const {
    const ExpressionStep& step = expression_.steps[s];
    const DType to = types_.steps[s];
    if (step.op->name != "cast" || (to != DType::kBF16 && to != DType::kF16)) return false;
    const ExpressionOperand& from = step.operands[0];
    const auto at = static_cast<size_t>(from.index);
    const DType dtype = from.is_step ? types_.steps[at] : call_.inputs[at].dtype;
    return IsOutput(s) && !read_by_step_[s] && dtype == DType::kF32;
  }

  int Register(const ExpressionOperand& operand) const {
    return operand.is_step ? step_register_[static_cast<size_t>(operand.index)] : operand.index;
  }

  // The register of a step whose value is dead before step `s`, or a new one.
  int Allocate(size_t s) {
    if (last_use_[s] == expression_.steps.size()) return registers_++;  // outputs keep theirs
    for (size_t i = 0; i < free_.size(); ++i) {
      const int reg = free_[i];
      free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(i));
      return reg;
    }
    return registers_++;
  }

  void Free(size_t s) {
    for (size_t earlier = 0; earlier < s; ++earlier) {
      if (last_use_[earlier] == s && owns_register_[earlier])
        free_.push_back(step_register_[earlier]);
    }
  }

  const char* AddStep(size_t s, PointwiseProgram& program) {
    const ExpressionStep& source = expression_.steps[s];
    const DType to = types_.steps[s];
    if (program.wide) return AddF64Step(s, to, program);
    if (!StoredAsFloat(to)) return refusal::kDType;
    if (CastsInLoad(s) || CastsInStore(s)) {
      if (!OperandsFit(source, call_, to)) return refusal::kDType;
      SetRegister(Register(source.operands[0]), /*owned=*/false);
      Free(s);
      return nullptr;
    }
    std::optional<TileStep> step = TileStepOf(source.op->name, source.attrs, to);
    if (!step) return refusal::kExpression;
    if (!OperandsFit(source, call_, to)) return refusal::kDType;
    const auto& operands = source.operands;
    if (!operands.empty()) step->a = Register(operands[0]);
    step->b = operands.size() > 1 ? Register(operands[1]) : step->a;
    step->c = operands.size() > 2 ? Register(operands[2]) : step->a;
    step->dst = Allocate(s);
    SetRegister(step->dst, /*owned=*/true);
    program.steps.push_back(*step);
    if (to == DType::kBF16) AddRounding(TileOp::kRoundBF16, step->dst, program);
    if (to == DType::kF16) AddRounding(TileOp::kRoundF16, step->dst, program);
    Free(s);
    return nullptr;
  }

  const char* AddF64Step(size_t s, DType to, PointwiseProgram& program) {
    const ExpressionStep& source = expression_.steps[s];
    if (source.operands.size() > kMostF64Operands) return refusal::kExpression;
    F64Step step{source.op, source.attrs, std::nullopt, to, 0, {}, source.operands.size()};
    if (const auto tile = TileStepOf(source.op->name, source.attrs, to)) step.tile = tile->op;
    step.operands.fill(source.operands.empty() ? 0 : Register(source.operands[0]));
    for (size_t k = 0; k < source.operands.size(); ++k)
      step.operands[k] = Register(source.operands[k]);
    step.dst = Allocate(s);
    SetRegister(step.dst, /*owned=*/true);
    program.wide_steps.push_back(std::move(step));
    Free(s);
    return nullptr;
  }

  void SetRegister(int reg, bool owned) {
    step_register_.push_back(reg);
    owns_register_.push_back(owned);
  }

  static void AddRounding(TileOp op, int reg, PointwiseProgram& program) {
    program.steps.push_back({op, reg, reg, reg, reg});
  }

  // The second output of the same step is copied from the first one's memory.
  void AddOutput(size_t o, PointwiseProgram& program) {
    const auto step = static_cast<size_t>(expression_.outputs[o]);
    TileOutput output{types_.steps[step], step_register_[step]};
    output.direct = output.dtype == (program.wide ? DType::kF64 : DType::kF32);
    for (const TileOutput& earlier : program.outputs) {
      if (earlier.direct && earlier.reg == output.reg) output.direct = false;
    }
    program.outputs.push_back(output);
    program.output_may_overwrite.push_back(step >= last_input_use_);
  }

  const Expression& expression_;
  const ExpressionTypes& types_;
  const OpCall& call_;
  std::vector<size_t> last_use_;
  size_t last_input_use_ = 0;
  std::vector<bool> read_by_step_;
  std::vector<int> step_register_;
  std::vector<bool> owns_register_;  // by step; else the register is its operand's
  std::vector<int> free_;
  int registers_ = 0;
};

// [B, C, ...] -> [B, C/block, ..., block]
Dims BlockedDims(const Dims& dims, int64_t block) {
  Dims blocked = dims;
  blocked[1] = CeilDiv(dims[1], block);
  blocked.push_back(block);
  return blocked;
}

// Strides of a row-major input over the output's dimensions, 0 where it is repeated.
Dims SpreadStrides(const Dims& from, const Dims& to) {
  const Dims own = RowMajorStrides(from);
  Dims strides(to.size(), 0);
  for (size_t d = 0; d < from.size(); ++d) {
    const size_t at = to.size() - from.size() + d;
    strides[at] = from[d] == 1 ? 0 : own[d];
  }
  return strides;
}

// The same over BlockedDims(to, block); empty when the input is not constant over the image.
Dims BlockedStrides(const Dims& from, const Dims& to, int64_t block) {
  const Dims plain = SpreadStrides(from, to);
  for (size_t d = 2; d < plain.size(); ++d) {
    if (plain[d] != 0 && to[d] != 1) return {};
  }
  Dims strides(to.size() + 1, 0);
  strides[0] = plain[0];
  strides[1] = plain[1] * block;
  strides.back() = plain[1];
  return strides;
}

// Two neighbouring dimensions are one when no broadcast input tells them apart.
void MergeDims(PointwiseProgram& program) {
  const auto mergeable = [&](size_t d) {
    if (program.padding.any() && d + 2 == program.dims.size()) return false;
    for (const TileInput& input : program.inputs) {
      if (input.spread == Spread::kBroadcast &&
          input.strides[d] != input.strides[d + 1] * program.dims[d + 1]) {
        return false;
      }
    }
    return true;
  };
  for (size_t d = program.dims.size(); d-- > 1;) {
    if (!mergeable(d - 1)) continue;
    const auto at = static_cast<std::ptrdiff_t>(d);
    program.dims[d - 1] *= program.dims[d];
    program.dims.erase(program.dims.begin() + at);
    for (TileInput& input : program.inputs) {
      if (input.spread != Spread::kBroadcast) continue;
      input.strides[d - 1] = input.strides[d];
      input.strides.erase(input.strides.begin() + at);
    }
  }
}

const char* SpreadInputs(const OpCall& call, const Dims& dims, int64_t block,
                         PointwiseProgram& program) {
  program.dims = block > 1 ? BlockedDims(dims, block) : dims;
  program.elements = ElementCount(program.dims);
  if (block > 1) {
    const int64_t blocks = program.dims[1];
    program.padding = {block, blocks, dims[1] - (blocks - 1) * block,
                       program.elements / (dims[0] * blocks * block)};
  }
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const TensorType& type = call.inputs[i];
    TileInput input{type.dtype, Spread::kBroadcast, static_cast<int>(i), {}};
    if (type.elements() == 1) {
      input.spread = Spread::kScalar;
    } else if (type.elements() == ElementCount(dims)) {
      input.spread = Spread::kFull;
    } else {
      input.strides =
          block > 1 ? BlockedStrides(type.dims, dims, block) : SpreadStrides(type.dims, dims);
      if (input.strides.empty()) return refusal::kLayout;
    }
    program.inputs.push_back(std::move(input));
  }
  MergeDims(program);
  return nullptr;
}

}  // namespace

int64_t PointwiseProgram::tile_size() const { return std::min(kTileSize, RoundUpFloats(elements)); }

std::optional<PointwiseProgram> CompilePointwise(const OpDef& op, const OpCall& call, int64_t block,
                                                 const char*& reason) {
  const Result<Expression> expression = ExpressionOf(op, call);
  if (!expression.ok()) {
    reason = refusal::kExpression;
    return std::nullopt;
  }
  ExpressionTypes types;
  types.dims = call.outputs[0].dims;
  if (op.name == "fused") {
    Result<ExpressionTypes> inferred = InferExpression(*expression, call.inputs, call.where);
    if (!inferred.ok()) {
      reason = refusal::kExpression;
      return std::nullopt;
    }
    types = std::move(*inferred);
  } else {
    types.steps = {call.outputs[0].dtype};
  }
  PointwiseProgram program;
  reason = SpreadInputs(call, types.dims, block, program);
  if (reason != nullptr) return std::nullopt;
  PointwiseProgram narrow = program;
  reason = Compiler(*expression, types, call).Compile(narrow);
  if (reason == nullptr) return narrow;
  program.wide = true;
  reason = Compiler(*expression, types, call).Compile(program);
  if (reason != nullptr) return std::nullopt;
  return program;
}

}  // namespace ridge::cpu
