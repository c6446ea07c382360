// Attention of 16 bits has a formula.  Bounds of others are what the libraries were seen
// to take at most; tests hold both against every answer on record.
#include "ridge/plan/hardware/device_workspaces.h"

#include <algorithm>
#include <utility>

#include "ridge/core/rounding.h"
#include "ridge/graph/ops/shared/attention.h"

namespace ridge {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// Parts of f32 in which cuDNN 9.19.0 sums gradients of 16-bit weights: up to 58 of those with many
// taps, as patches of pictures have them; along one axis, as sounds have it, up to 56 that take
// 102 MB together, and 4 of large ones.
int64_t PartialSums(const OpDef& op, const ConvGeometry& g) {
  constexpr int64_t kManyTaps = 64, kParts = 64, kPartsOfLarge = 4;
  if (op.name != "conv_grad_weight") return 0;
  const int64_t part = 4 * g.outputs() * RoundUp(g.group_inputs, int64_t{8}) * g.window.taps();
  if (g.window.taps() >= kManyTaps) return kParts * part;
  if (g.window.rank > 1) return 0;
  return std::max(kPartsOfLarge * part, std::min(kParts * part, 128 * kMiB));
}

// cuDNN 9.19.0 copies both images and rounds weights beside them in f32, and where the channels of
// an image are no multiple of 8; gradients of weights it sums in up to 17 parts.  Every other
// convolution of 16 bits that it was asked about takes 28 MB or less.
int64_t ConvWorkspace(const OpDef& op, const OpCall& call) {
  constexpr int64_t kUsual = 32 * kMiB;
  const std::optional<ConvGeometry> g = AskedGeometry(op, call);
  if (!g) return kUsual;
  const int64_t element = BytesPerElement(call.inputs[0].dtype);
  const int64_t least = kUsual + (element < 4 ? PartialSums(op, *g) : 0);
  if (element < 4 && g->inputs() % 8 == 0 && g->outputs() % 8 == 0) return least;
  const int64_t images = RoundUp(g->inputs(), int64_t{8}) * g->window.inputs() +
                         RoundUp(g->outputs(), int64_t{8}) * g->window.outputs();
  const int64_t weights = g->outputs() * g->group_inputs * g->window.taps();
  const int64_t copies = op.name == "conv_grad_weight" ? 17 : 2;
  return least + element * (g->batch * images + copies * weights);
}

bool IsHopper(double capability) { return capability >= 9 && capability < 10; }
// Of data centers: on 12.x cuDNN's gradient of attention keeps scores, as on Ampere.
bool IsBlackwell(double capability) { return capability >= 10 && capability < 11; }

// What cuDNN 9.19.0 takes for attention of 16 bits, to the byte in every answer on record.
int64_t CudnnAttention(double capability, const AttentionExtents& e) {
  constexpr int64_t kOnHopper = 256;
  return IsHopper(capability) && e.queries > 1 ? kOnHopper : 0;
}

// Of its deterministic gradient: a sum of each row in f32, before Blackwell all scores in 16 bits,
// and where heads share keys a part of their gradients for each head of the queries.
int64_t CudnnAttentionGrad(double capability, const AttentionExtents& e) {
  constexpr int64_t kTile = 64, kAlignment = 128;
  const int64_t heads = e.batch * e.heads;
  const int64_t sums = 4 * heads * e.queries;
  const int64_t element = IsBlackwell(capability) ? 4 : 2;
  const bool grouped = e.heads != e.kv_heads;
  const int64_t parts = grouped ? RoundUp(element * heads * e.keys * e.head_dim, kAlignment) +
                                      RoundUp(element * heads * e.keys * e.value_dim, kAlignment)
                                : 0;
  if (IsBlackwell(capability)) return sums + parts + (grouped ? kAlignment : 0);
  const int64_t key_tiles = IsHopper(capability) ? 2 : 1;
  const int64_t scores = 2 * heads * RoundUp(e.queries, kTile) * RoundUp(e.keys, key_tiles * kTile);
  return sums + scores + parts + key_tiles * kAlignment;
}

// The sums of rows and, before Blackwell, 2 bytes for each pair of a query and a key.
int64_t AttentionGradBound(double capability, const OpCall& call) {
  const AttentionExtents e = ExtentsOf(call);
  const int64_t sums = 4 * e.batch * e.heads * e.queries;
  return sums + (IsBlackwell(capability) ? 64 * kMiB : kMiB + 2 * ScoresOf(call));
}

int64_t CudnnAttentionWorkspace(const OpDef& op, double capability, const OpCall& call) {
  const AttentionExtents e = ExtentsOf(call);
  return op.name == "attention_grad" ? CudnnAttentionGrad(capability, e)
                                     : CudnnAttention(capability, e);
}

int64_t AttentionBound(const OpDef& op, double capability, const OpCall& call) {
  return op.name == "attention_grad" ? AttentionGradBound(capability, call)
                                     : kMiB + call.inputs[0].bytes();
}

// cuDNN refuses 16-bit operands with a result of f32.
bool HasEngine(const OpCall& call) {
  return BytesPerElement(call.inputs[0].dtype) == BytesPerElement(call.outputs[0].dtype);
}

}  // namespace

int64_t ScoresOf(const OpCall& call) {
  const AttentionExtents e = ExtentsOf(call);
  return e.batch * e.heads * e.queries * e.keys;
}

DeviceWorkspaces::DeviceWorkspaces(const Hardware& hardware, bool tf32, AskConv ask,
                                   const AbsentKernels* kernels)
    : device_(hardware.id),
      is_cpu_(IsCpu(hardware)),
      tf32_(tf32),
      capability_(ComputeCapability(hardware)),
      ask_(std::move(ask)),
      kernels_(kernels) {}

// Whether CudnnAttentionWorkspace() is what cuDNN takes, as ridge asks it.
bool DeviceWorkspaces::HasFormula(const OpDef& op, const OpCall& call) const {
  constexpr double kLeastOfCudnn = 8;
  return IsAttention(op) && kernels_ != nullptr && capability_ >= kLeastOfCudnn &&
         BytesPerElement(call.inputs[0].dtype) == 2;
}

// The most that any library takes.
int64_t DeviceWorkspaces::Bound(const OpDef& op, const OpCall& call) const {
  if (IsAttention(op)) return AttentionBound(op, capability_, call);
  switch (op.cost_class) {
    case CostClass::kMatmul:  // cuBLASLt's caps: what NVIDIA recommends for Hopper and later
      return (capability_ >= 9 ? 32 : 4) * kMiB;
    case CostClass::kConv:
      return ConvWorkspace(op, call);
    case CostClass::kReduce:
    case CostClass::kNorm:
      return kMiB;  // partial sums
    default:
      return 0;
  }
}

// Convolutions and attention run in cuDNN, norms where they are no kernels of ours; none for other
// operators.
std::optional<std::string> DeviceWorkspaces::QuestionAbout(const OpDef& op,
                                                           const OpCall& call) const {
  if (std::optional<std::string> conv = ConvQuestion(op, call, tf32_)) return conv;
  if (!IsAttention(op) && op.cost_class != CostClass::kNorm) return std::nullopt;
  std::string text = op.name;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.has_input(i)) text += " " + TypeToString(call.inputs[i]);
  }
  return text;
}

void DeviceWorkspaces::Set(const OpDef& op, const OpCall& call, KernelChoice& choice) const {
  if (is_cpu_) return;
  choice.is_bound = !HasFormula(op, call);
  choice.workspace_bytes =
      choice.is_bound ? Bound(op, call) : CudnnAttentionWorkspace(op, capability_, call);
  if (capability_ == 0) return;  // no GPU of NVIDIA's
  const auto own =
      kernels_ == nullptr ? std::nullopt : kernels_->Workspace(op, call, choice.workspace_bytes);
  if (own) {
    choice.workspace_bytes = own->bytes;
    choice.is_bound = own->is_bound;
    return;
  }
  const std::optional<std::string> question = QuestionAbout(op, call);
  if (!question) return;
  choice.key = kCudnnKey + *question;
  if (const auto recorded = FindConvAnswer(device_, *question)) {
    choice.workspace_bytes = recorded->bytes;
    choice.is_bound = false;
    choice.answer = {ConvLibrary(), /*is_asked=*/false, recorded->first_bytes};
  } else if (ask_ && CanBeAsked(*question) && HasEngine(call)) {
    const std::optional<ConvReply> reply = ask_(*question);
    if (!reply) return;
    choice.workspace_bytes = reply->answer.bytes;
    choice.is_bound = false;
    choice.answer = {reply->library, /*is_asked=*/true, reply->answer.first_bytes};
  }
}

}  // namespace ridge
