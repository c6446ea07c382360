// Where we come from: plan/planner.cc decided order, kernels and offsets.
// What is known here: addresses; every pointer of every node is computed once, for both input
// slots. Where it goes next: backend/*/kernels turn buffers into numbers.
#include "ridge/runtime/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "ridge/backend/cpu/parallel.h"
#include "ridge/core/process.h"
#include "ridge/graph/interpret.h"

namespace ridge {
namespace {

constexpr int kSlots = 2;

// Same layout on both sides.
class CopyKernel : public Kernel {
 public:
  explicit CopyKernel(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {}
  Status Run(const KernelBuffers& buffers) override {
    if (bytes_ > 0) std::memcpy(buffers.outputs[0], buffers.inputs[0], bytes_);
    return Status();
  }

 private:
  size_t bytes_;
};

// Elements of one persistent value.
struct Piece {
  size_t value;
  int64_t begin, end;
};

std::vector<Piece> CutIntoPieces(const std::vector<PersistentValue>& values) {
  constexpr int64_t kElements = 64 * kInitialGrain;
  std::vector<Piece> pieces;
  for (size_t v = 0; v < values.size(); ++v) {
    const int64_t count = values[v].type.elements();
    for (int64_t begin = 0; begin < count; begin += kElements)
      pieces.push_back({v, begin, std::min(count, begin + kElements)});
  }
  return pieces;
}

void Initialize(const PersistentValue& value, uint64_t seed, const Piece& piece, std::byte* arena) {
  ValueInfo info;
  info.name = value.name;
  info.type = value.type;
  if (value.kind != ValueKind::kInput) info.init = value.init;
  FillInitialRange(info, seed, piece.begin, piece.end, arena + value.offset_bytes);
}

Result<std::unique_ptr<Kernel>> MakeKernel(const StepPlan& step, const PlannedNode& node,
                                           Backend& backend) {
  if (node.def != nullptr) return backend.Create(*node.def, node.call, node.choice);
  if (node.choice.kernel != "copy") return backend.CreateReorder(node.call.inputs[0], node.choice);
  const int64_t bytes = step.values[static_cast<size_t>(node.inputs[0])].size_bytes;
  return std::unique_ptr<Kernel>(std::make_unique<CopyKernel>(bytes));
}

bool AllFinite(const TensorType& type, const void* data) {
  if (!IsFloat(type.dtype)) return true;
  const int64_t count = type.elements();
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(LoadAsDouble(type.dtype, data, i))) return false;
  }
  return true;
}

}  // namespace

struct Executor::CompiledNode {
  std::unique_ptr<Kernel> kernel;
  std::array<std::vector<const void*>, kSlots> inputs;
  std::array<std::vector<void*>, kSlots> outputs;
  void* workspace = nullptr;
};

struct Executor::CompiledStep {
  std::vector<CompiledNode> nodes;
  std::vector<double> seconds;
  int loss_node = -1;  // makes the output "loss"
  const void* loss = nullptr;
  TensorType loss_type;
};

Executor::Executor(Program program, Arena arena)
    : program_(std::move(program)), arena_(std::move(arena)) {}

Executor::~Executor() = default;

Result<std::unique_ptr<Executor>> Executor::Create(Program program, Backend& backend) {
  RIDGE_ASSIGN_OR_RETURN(Arena arena, Arena::Map(program.arena_bytes));
  std::unique_ptr<Executor> executor(new Executor(std::move(program), std::move(arena)));
  RIDGE_RETURN_IF_ERROR(executor->Compile(backend));
  return executor;
}

Status Executor::Compile(Backend& backend) {
  threads_ = backend.threads();
  for (const StepPlan& step : program_.steps) {
    auto compiled = std::make_unique<CompiledStep>();
    for (const PlannedNode& node : step.nodes) {
      RIDGE_ASSIGN_OR_RETURN(CompiledNode ready, CompileNode(step, node, backend));
      compiled->nodes.push_back(std::move(ready));
    }
    compiled->seconds.assign(step.nodes.size(), 0);
    WatchLoss(step, *compiled);
    compiled_.push_back(std::move(compiled));
  }
  return Status();
}

std::byte* Executor::Address(const StepPlan& step, int value, int slot) const {
  if (value < 0) return nullptr;
  const PlannedValue& planned = step.values[static_cast<size_t>(value)];
  if (slot == 0 || !planned.persistent) return arena_.data() + planned.offset_bytes;
  // Slot 1 of an input follows its slot 0; everything else has one place for both.
  const auto next = static_cast<size_t>(planned.persistent_index) + 1;
  const bool doubled = next < program_.persistent.size() && program_.persistent[next].slot == 1;
  return arena_.data() + (doubled ? program_.persistent[next].offset_bytes : planned.offset_bytes);
}

Result<Executor::CompiledNode> Executor::CompileNode(const StepPlan& step, const PlannedNode& node,
                                                     Backend& backend) const {
  CompiledNode ready;
  RIDGE_ASSIGN_OR_RETURN(ready.kernel, MakeKernel(step, node, backend));
  for (int slot = 0; slot < kSlots; ++slot) {
    const auto at = static_cast<size_t>(slot);
    for (int value : node.inputs) ready.inputs[at].push_back(Address(step, value, slot));
    for (int value : node.outputs) ready.outputs[at].push_back(Address(step, value, slot));
  }
  if (node.workspace_offset >= 0) ready.workspace = arena_.data() + node.workspace_offset;
  return ready;
}

void Executor::WatchLoss(const StepPlan& step, CompiledStep& compiled) const {
  const auto loss = step.outputs.find("loss");
  if (loss == step.outputs.end()) return;
  compiled.loss = Address(step, loss->second, 0);
  compiled.loss_type = step.values[static_cast<size_t>(loss->second)].type;
  for (size_t n = 0; n < step.nodes.size(); ++n) {
    const auto& made = step.nodes[n].outputs;
    if (std::find(made.begin(), made.end(), loss->second) != made.end())
      compiled.loss_node = static_cast<int>(n);
  }
}

void Executor::TouchArena() {
  cpu::ForEachPart(threads_, [&](int part) { arena_.Touch(part, threads_); });
}

// Written by the whole team: on a large model this is also the first touch of its variables.
void Executor::InitializeVariables(uint64_t seed) {
  const std::vector<Piece> pieces = CutIntoPieces(program_.persistent);
  const auto step = static_cast<size_t>(threads_);
  cpu::ForEachPart(threads_, [&](int part) {
    for (size_t i = static_cast<size_t>(part); i < pieces.size(); i += step)
      Initialize(program_.persistent[pieces[i].value], seed, pieces[i], arena_.data());
  });
}

const PersistentValue* Executor::FindPersistent(const std::string& name) const {
  for (const PersistentValue& value : program_.persistent) {
    if (value.name == name) return &value;
  }
  return nullptr;
}

void* Executor::Persistent(const std::string& name, int slot) {
  for (const PersistentValue& value : program_.persistent) {
    if (value.name == name && value.slot == slot) return arena_.data() + value.offset_bytes;
  }
  return nullptr;
}

Status Executor::RunNode(CompiledNode& node, int slot) {
  const auto at = static_cast<size_t>(slot);
  return node.kernel->Run({node.inputs[at], node.outputs[at], node.workspace});
}

Status Executor::Run(int step, int slot) {
  CompiledStep& compiled = *compiled_[static_cast<size_t>(step)];
  double before = timing_ ? MonotonicSeconds() : 0;
  for (size_t n = 0; n < compiled.nodes.size(); ++n) {
    RIDGE_RETURN_IF_ERROR(RunNode(compiled.nodes[n], slot));
    if (timing_) {
      const double now = MonotonicSeconds();
      compiled.seconds[n] = now - before;
      before = now;
    }
    if (static_cast<int>(n) == compiled.loss_node) RIDGE_RETURN_IF_ERROR(CheckLoss(compiled));
  }
  return Status();
}

Status Executor::CheckLoss(const CompiledStep& compiled) const {
  if (AllFinite(compiled.loss_type, compiled.loss)) return Status();
  const double loss = LoadAsDouble(compiled.loss_type.dtype, compiled.loss, 0);
  if (std::isnan(loss)) return Status(ErrorCode::kFailed, "loss is nan");  // whatever its sign
  return Status(ErrorCode::kFailed, fmt::format("loss is {}", loss));
}

Result<double> Executor::TimeNode(int step, int node, int slot) {
  CompiledStep& compiled = *compiled_[static_cast<size_t>(step)];
  const double before = MonotonicSeconds();
  RIDGE_RETURN_IF_ERROR(RunNode(compiled.nodes[static_cast<size_t>(node)], slot));
  return MonotonicSeconds() - before;
}

int Executor::StepIndex(const std::string& name) const {
  for (size_t i = 0; i < program_.steps.size(); ++i) {
    if (program_.steps[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

const void* Executor::Output(int step, const std::string& name) const {
  const StepPlan& plan = program_.steps[static_cast<size_t>(step)];
  const auto found = plan.outputs.find(name);
  if (found == plan.outputs.end()) return nullptr;
  return arena_.data() + plan.values[static_cast<size_t>(found->second)].offset_bytes;
}

const TensorType& Executor::OutputType(int step, const std::string& name) const {
  const StepPlan& plan = program_.steps[static_cast<size_t>(step)];
  return plan.values[static_cast<size_t>(plan.outputs.at(name))].type;
}

const std::vector<double>& Executor::NodeSeconds(int step) const {
  return compiled_[static_cast<size_t>(step)]->seconds;
}

std::string Executor::NonFiniteStart(int slot) const {
  for (const PersistentValue& value : program_.persistent) {
    if (value.kind == ValueKind::kInput && value.slot != slot) continue;
    if (AllFinite(value.type, arena_.data() + value.offset_bytes)) continue;
    return value.kind == ValueKind::kInput
               ? fmt::format("input '{}'", value.name)
               : fmt::format("variable '{}' before the step", value.name);
  }
  return "";
}

Result<std::string> Executor::FirstNonFinite(int step, int slot) {
  if (std::string start = NonFiniteStart(slot); !start.empty()) return start;
  const StepPlan& plan = program_.steps[static_cast<size_t>(step)];
  CompiledStep& compiled = *compiled_[static_cast<size_t>(step)];
  for (int n = 0; n <= compiled.loss_node; ++n) {
    CompiledNode& node = compiled.nodes[static_cast<size_t>(n)];
    RIDGE_RETURN_IF_ERROR(RunNode(node, slot));
    const PlannedNode& planned = plan.nodes[static_cast<size_t>(n)];
    for (size_t k = 0; k < planned.outputs.size(); ++k) {
      if (!AllFinite(planned.call.outputs[k], node.outputs[static_cast<size_t>(slot)][k]))
        return fmt::format("node '{}' ({})", planned.name, planned.op);
    }
  }
  return std::string();
}

}  // namespace ridge
