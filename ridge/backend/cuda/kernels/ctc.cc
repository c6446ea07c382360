// ctc_loss and its gradient: log(sum(exp)) of each frame by a block; then a block a sample walks
// the frames, its threads the states of the lattice, in double (graph/ops/shared/ctc.h).
//
// The gradient keeps alpha of all frames in workspace, walks back with beta, and collects the
// states of a class in one order, so nothing is added at the same time.
#include "ridge/graph/ops/shared/ctc.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/backend/cuda/kernels/row_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"

namespace ridge::cuda {
namespace {

constexpr std::string_view kFrameSumsText = R"cuda(
RIDGE_KERNEL void frame_sums(const $T* logits, double* log_sums) {
  __shared__ R scratch[32];
  for (i64 row = blockIdx.x; row < $rows; row += gridDim.x) {
    const Row<$T> own(logits + row * $extent);
    i64 place;
    const double log_sum = BlockLogSumExp<double>(own, scratch, place);
    if (threadIdx.x == 0) log_sums[row] = log_sum;
  }
}
)cuda";

constexpr std::string_view kLatticeText = R"cuda(
RIDGE_FUNCTION double LogAdd(double a, double b, double c) {
  const double most = Larger(a, Larger(b, c));
  if (!(most > -Infinity<double>())) return a + b + c;
  return most + log(exp(a - most) + exp(b - most) + exp(c - most));
}

// One sample: its logits [frames, classes] and targets.
struct Sample {
  const $T* logits;
  const double* log_sums;
  const $I* targets;
  int frames, states;
  bool valid;

  RIDGE_FUNCTION int Label(int state) const {
    return state % 2 == 1 ? (int)targets[state / 2] : $blank;
  }
  // The state may be reached from the one two before it.
  RIDGE_FUNCTION bool Skips(int state) const {
    return state % 2 == 1 && state >= 3 && targets[state / 2] != targets[state / 2 - 1];
  }
  RIDGE_FUNCTION double LogProb(int frame, int label) const {
    return (double)Load(logits, (i64)frame * $classes + label) - log_sums[frame];
  }
};

RIDGE_FUNCTION Sample BlockSampleAt(i64 b, const $T* logits, const $I* targets,
                                    const $J* logit_lengths, const $K* target_lengths,
                                    const double* log_sums, R* scratch) {
  const i64 frames = logit_lengths[b], count = target_lengths[b];
  bool wrong = frames < 0 || frames > $frames || count < 0 || count > $targets;
  for (i64 i = threadIdx.x; !wrong && i < count; i += blockDim.x) {
    const i64 target = targets[b * $targets + i];
    wrong = target < 0 || target >= $classes;
  }
  const bool valid = BlockMax(wrong ? R(1) : R(0), scratch) == 0;
  Sample sample = {logits + b * ($frames * $classes), log_sums + b * $frames,
                   targets + b * $targets, valid ? (int)frames : 0, valid ? 2 * (int)count + 1 : 0,
                   valid};
  return sample;
}

// Fills alpha [depth, max_states], frame t in row t % depth; returns the loss.
RIDGE_FUNCTION double BlockAlpha(const Sample& sample, double* alpha) {
  for (int t = 0; t < sample.frames; ++t) {
    double* const row = alpha + (i64)(t % $depth) * $max_states;
    const double* const last = alpha + (i64)((t + $depth - 1) % $depth) * $max_states;
    for (int s = threadIdx.x; s < sample.states; s += blockDim.x) {
      double before = s <= 1 ? 0.0 : -Infinity<double>();
      if (t > 0)
        before = LogAdd(last[s], s >= 1 ? last[s - 1] : -Infinity<double>(),
                        sample.Skips(s) ? last[s - 2] : -Infinity<double>());
      row[s] = before + sample.LogProb(t, sample.Label(s));
    }
    __syncthreads();
  }
  if (!sample.valid) return NotANumber<double>();
  if (sample.frames == 0) return sample.states == 1 ? 0.0 : Infinity<double>();
  const double* const last = alpha + (i64)((sample.frames - 1) % $depth) * $max_states;
  const double loss =
      0.0 - LogAdd(last[sample.states - 1],
                   sample.states > 1 ? last[sample.states - 2] : -Infinity<double>(),
                   -Infinity<double>());
  __syncthreads();
  return loss;
}
)cuda";

constexpr std::string_view kCtcLossText = R"cuda(
RIDGE_KERNEL void ctc_loss($parameters, double* alphas, $U* losses) {
  __shared__ R scratch[32];
  for (i64 b = blockIdx.x; b < $batch; b += gridDim.x) {
    const Sample sample =
        BlockSampleAt(b, logits, targets, logit_lengths, target_lengths, log_sums, scratch);
    const double loss = BlockAlpha(sample, alphas + b * ($depth * $max_states));
    if (threadIdx.x == 0)
      Store(losses, b, $zero_infinity && fabs(loss) == Infinity<double>() ? 0.0 : loss);
  }
}
)cuda";

constexpr std::string_view kCtcGradText = R"cuda(
// The chain of the odd states of each class: heads [classes], next [max_states]; -1 ends it.
RIDGE_FUNCTION void BlockChain(const Sample& sample, int* heads, int* next) {
  for (int k = threadIdx.x; k < $classes; k += blockDim.x) heads[k] = -1;
  __syncthreads();
  for (int s = 1 + 2 * threadIdx.x; s < sample.states; s += 2 * blockDim.x) {
    const int label = sample.Label(s);
    bool is_first = true;
    for (int other = 1; other < s && is_first; other += 2) is_first = sample.Label(other) != label;
    if (is_first) heads[label] = s;
    next[s] = -1;
    for (int other = s + 2; other < sample.states && next[s] < 0; other += 2)
      if (sample.Label(other) == label) next[s] = other;
  }
  __syncthreads();
}

// beta of frame t, its emission included, into own; the shares of states in the frame.
RIDGE_FUNCTION void BetaOfFrame(const Sample& sample, int t, double loss, const double* alpha,
                                const double* later, double* own, double* shares) {
  for (int s = threadIdx.x; s < sample.states; s += blockDim.x) {
    double beta = s >= sample.states - 2 ? 0.0 : -Infinity<double>();
    if (t < sample.frames - 1)
      beta = LogAdd(later[s], s + 1 < sample.states ? later[s + 1] : -Infinity<double>(),
                    s + 2 < sample.states && sample.Skips(s + 2) ? later[s + 2]
                                                                 : -Infinity<double>());
    own[s] = beta + sample.LogProb(t, sample.Label(s));
    shares[s] = exp(alpha[(i64)t * $max_states + s] + beta + loss);
  }
}

RIDGE_FUNCTION void BlockWriteFrame(const Sample& sample, int t, const double* shares,
                                    const int* heads, const int* next, double dloss, $T* dlogits,
                                    double* scratch) {
  double blanks = 0;
  for (int s = 2 * threadIdx.x; s < sample.states; s += 2 * blockDim.x) blanks += shares[s];
  blanks = BlockSum(blanks, scratch);
  for (int k = threadIdx.x; k < $classes; k += blockDim.x) {
    double share = k == $blank ? blanks : 0.0;
    for (int s = heads[k]; s >= 0; s = next[s]) share += shares[s];
    const double slope = (exp(sample.LogProb(t, k)) - share) * dloss;
    Store(dlogits, (i64)t * $classes + k, slope);
  }
}

RIDGE_KERNEL void ctc_loss_grad($parameters, double* alphas, double* betas, int* chains,
                                const $U* dlosses, $T* dlogits) {
  __shared__ R scratch[32];
  __shared__ double sum_scratch[32];
  for (i64 b = blockIdx.x; b < $batch; b += gridDim.x) {
    const Sample sample =
        BlockSampleAt(b, logits, targets, logit_lengths, target_lengths, log_sums, scratch);
    double* const alpha = alphas + b * ($depth * $max_states);
    double* const beta = betas + b * (3 * $max_states);
    int* const heads = chains + b * ($classes + $max_states);
    const double loss = BlockAlpha(sample, alpha), dloss = (double)Load(dlosses, b);
    const bool finite = fabs(loss) < Infinity<double>();
    const bool zero = $zero_infinity && fabs(loss) == Infinity<double>();
    $T* const own = dlogits + b * ($frames * $classes);
    if (finite) {
      BlockChain(sample, heads, heads + $classes);
      for (int t = sample.frames - 1; t >= 0; --t) {
        double* const later = beta + (i64)(1 - t % 2) * $max_states;
        double* const now = beta + (i64)(t % 2) * $max_states;
        double* const shares = beta + (i64)2 * $max_states;
        BetaOfFrame(sample, t, loss, alpha, later, now, shares);
        __syncthreads();
        BlockWriteFrame(sample, t, shares, heads, heads + $classes, dloss, own, sum_scratch);
        __syncthreads();
      }
    }
    const i64 written = finite ? (i64)sample.frames * $classes : 0;
    const i64 counted = sample.valid ? (i64)sample.frames * $classes : $frames * $classes;
    for (i64 i = written + threadIdx.x; i < $frames * $classes; i += blockDim.x)
      Store(own, i, zero ? 0.0 : i < counted ? NotANumber<double>() : 0.0 * dloss);
    __syncthreads();
  }
}
)cuda";

struct CtcText {
  const OpCall& call;
  CtcShape shape;
  RowShape frames;
  bool gradient;

  CtcText(const OpCall& of, bool is_gradient)
      : call(of), shape(CtcShapeOf(of)), gradient(is_gradient) {
    frames = ShapeOfRows(shape.batch * shape.frames, shape.classes,
                         BytesPerElement(call.inputs[0].dtype), /*most_kept=*/32);
  }

  const char* Stored(size_t input) const { return StorageType(call.inputs[input].dtype); }
  int64_t depth() const { return gradient ? std::max<int64_t>(shape.frames, 1) : 2; }

  std::string Parameters() const {
    return fmt::format(
        "const {}* logits, const {}* targets, const {}* logit_lengths, const {}* target_lengths, "
        "const double* log_sums",
        Stored(0), Stored(1), Stored(2), Stored(3));
  }

  TextValues Values() const {
    const auto number = [](int64_t n) { return std::to_string(n); };
    TextValues values = frames.Values();
    values.insert(values.end(),
                  {{"T", Stored(0)},
                   {"I", Stored(1)},
                   {"J", Stored(2)},
                   {"K", Stored(3)},
                   {"U", StorageType(gradient ? call.inputs[4].dtype : call.outputs[0].dtype)},
                   {"parameters", Parameters()},
                   {"batch", number(shape.batch)},
                   {"frames", fmt::format("{}ll", shape.frames)},
                   {"classes", number(shape.classes)},
                   {"targets", number(shape.targets)},
                   {"blank", number(shape.blank)},
                   {"max_states", number(shape.max_states())},
                   {"depth", fmt::format("{}ll", depth())},
                   {"zero_infinity", shape.zero_infinity ? "true" : "false"}});
    return values;
  }

  void Write(KernelText& text) const {
    const TextValues values = Values();
    const char* compute = ComputeType(call.inputs[0].dtype);
    text.source = fmt::format("typedef {} R;\n", compute) + RowText(frames) +
                  LogSumExpText(frames, Stored(0)) + FillText(kFrameSumsText, values) +
                  FillText(kLatticeText, values) +
                  FillText(gradient ? kCtcGradText : kCtcLossText, values);
    const int64_t states = shape.batch * shape.max_states();
    const Argument sums = text.Reserve(frames.rows * 8),
                   alphas = text.Reserve(states * depth() * 8);
    std::vector<Argument> arguments = {Argument::Input(0),
                                       Argument::Input(1),
                                       Argument::Input(2),
                                       Argument::Input(3),
                                       sums,
                                       alphas};
    if (gradient) {
      arguments.push_back(text.Reserve(3 * states * 8));
      arguments.push_back(text.Reserve((states + shape.batch * shape.classes) * 4));
      arguments.push_back(Argument::Input(4));
    }
    arguments.push_back(Argument::Output(0));
    text.launches = {
        {"frame_sums", frames.Blocks(), frames.threads, {Argument::Input(0), sums}},
        {gradient ? "ctc_loss_grad" : "ctc_loss", BlocksForRows(shape.batch),
         ThreadsForRow(std::max(shape.max_states(), gradient ? shape.classes : 0)), arguments}};
  }
};

const char* WriteCtc(const OpDef& op, const OpCall& call, KernelText& text) {
  CtcText(call, op.name == "ctc_loss_grad").Write(text);
  return nullptr;
}

}  // namespace

TextKernelDef CtcTextKernel() {
  return {.name = "cuda.ctc", .ops = {"ctc_loss", "ctc_loss_grad"}, .write = WriteCtc};
}

}  // namespace ridge::cuda
