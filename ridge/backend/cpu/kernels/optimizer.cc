// adam_update and sgd_update, f32: one sweep over all arrays, 28 bytes a parameter for Adam, which
// is the memory limit; normal stores (measured: streaming stores are slower here).
//
// Parameter and moments may have any blocked layout: the sweep is over their bytes, padding
// included, which stays 0.  The gradient comes in the same layout, or row-major where blocks of it
// can be gathered on the way.
#include "ridge/graph/ops/shared/optimizer.h"

#include <array>
#include <cmath>
#include <cstring>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/block_gather.h"
#include "ridge/backend/cpu/kernels/moment_blocks.h"
#include "ridge/backend/cpu/kernels/update_runs.h"
#include "ridge/backend/cpu/layouts.h"
#include "ridge/backend/cpu/parallel.h"

namespace ridge::cpu {
namespace {

constexpr int64_t kGrain = 1024;  // threads never share a cache line
constexpr int64_t kAhead = 2;     // blocks that are asked for before they are gathered
constexpr size_t kParam = 0, kGrad = 1;

// Shares of the speed of a sweep over equal layouts, so that of two layouts the better one is kept.
// (f32 [1536,384] from memory: 0.20 ms; by rows 0.38, by turning 0.45; a copy is 0.3.)
constexpr double kByRows = 0.95, kByTurning = 0.85;

double LoadNumber(const OpCall& call, const KernelBuffers& b, size_t input) {
  return LoadAsDouble(call.inputs[input].dtype, b.inputs[input], 0);
}

float LoadGradScale(const OpCall& call, const KernelBuffers& b, size_t apply) {
  return call.has_input(apply + 1) ? static_cast<float>(LoadNumber(call, b, apply + 1)) : 1;
}

// Cuts one optimizer's sweep into runs.
class Sweep {
 public:
  Sweep(const OpCall& call, const KernelChoice& choice, int threads)
      : elements_(LayoutBytesOf(call.inputs[kParam], choice.input_layouts[kParam]) /
                  int64_t{sizeof(float)}),
        threads_(threads) {
    if (choice.input_layouts[kParam] != choice.input_layouts[kGrad])
      gather_ = BlockGather::Plan(DescOf(call.inputs[kParam], choice.input_layouts[kParam]));
  }

  // Calls f(first, count, grad) for runs of the elements as the parameter has them; `grad` points
  // at the gradient of the first.
  template <typename F>
  void ForEachRun(const float* grad, const F& f) const {
    if (!gather_) {
      ParallelFor(threads_, elements_, kGrain,
                  [&](int64_t begin, int64_t end) { f(begin, end - begin, grad + begin); });
      return;
    }
    const int64_t length = gather_->elements();
    ParallelFor(threads_, gather_->blocks(), kGrain / length + 1, [&](int64_t first, int64_t last) {
      alignas(64) std::array<float, BlockGather::kMostElements> block;
      for (int64_t k = first; k < last; ++k) {
        if (k + kAhead < last) gather_->Prefetch(grad, k + kAhead);
        gather_->Gather(grad, k, block.data());
        f(gather_->PlaceOf(k), length, block.data());
      }
    });
  }

 private:
  const int64_t elements_;
  const int threads_;
  std::optional<BlockGather> gather_;
};

// What stays as it is where `apply` is false.
class KeptValues {
 public:
  KeptValues(const CandidateQuery& q, const KernelChoice& choice, size_t apply)
      : apply_(apply), given_(q.call.has_input(apply)) {
    for (const auto& [output, input] : q.op.in_place) {
      const auto o = static_cast<size_t>(output);
      if (o >= q.call.outputs.size()) continue;
      const int64_t bytes = LayoutBytesOf(q.call.outputs[o], choice.output_layouts[o]);
      copies_.push_back({o, static_cast<size_t>(input), static_cast<size_t>(bytes)});
    }
  }

  // Whether they do; then they are where they should be.
  bool Keep(const KernelBuffers& b) const {
    if (!given_ || *static_cast<const uint8_t*>(b.inputs[apply_]) != 0) return false;
    for (const Copy& copy : copies_) {
      void* to = b.outputs[copy.output];
      if (to != b.inputs[copy.input]) std::memcpy(to, b.inputs[copy.input], copy.bytes);
    }
    return true;
  }

 private:
  struct Copy {
    size_t output, input, bytes;
  };
  const size_t apply_;
  const bool given_;
  std::vector<Copy> copies_;
};

class AdamKernel : public HostKernel<AdamKernel> {
 public:
  AdamKernel(const CandidateQuery& q, const KernelChoice& choice)
      : call_(q.call), sweep_(q.call, choice, q.threads()), kept_(q, choice, kAdamApply) {
    if (MomentBlocks::Takes(call_, kAdamM))
      blocks_.emplace(call_, std::vector<MomentSlots>{kAdamM, kAdamV}, q.threads());
  }

  Status Run(const KernelBuffers& b) {
    if (kept_.Keep(b)) return Status();
    AdamNumbers numbers =
        Numbers(LoadNumber(call_, b, 4), *static_cast<const int64_t*>(b.inputs[5]));
    numbers.grad_scale = LoadGradScale(call_, b, kAdamApply);
    const auto in = [&](size_t i) { return static_cast<const float*>(b.inputs[i]); };
    const auto out = [&](size_t i) { return static_cast<float*>(b.outputs[i]); };
    if (blocks_) {
      blocks_->ForEach(b, [&](int64_t i, int64_t count, float* const* moments) {
        const AdamArrays arrays{in(kParam) + i, in(kGrad) + i, moments[0], moments[1],
                                out(0) + i,     moments[0],    moments[1]};
        AdamRun(numbers, arrays, 0, count);
      });
      return Status();
    }
    sweep_.ForEachRun(in(kGrad), [&](int64_t i, int64_t count, const float* grad) {
      const AdamArrays arrays{in(kParam) + i, grad,       in(2) + i, in(3) + i,
                              out(0) + i,     out(1) + i, out(2) + i};
      AdamRun(numbers, arrays, 0, count);
    });
    return Status();
  }

 private:
  AdamNumbers Numbers(double lr, int64_t step) const {
    const double beta1 = call_.number("beta1"), beta2 = call_.number("beta2");
    const double decay = call_.number("weight_decay"), t = static_cast<double>(step);
    const bool decoupled = call_.integer("decoupled") != 0;
    const auto f = [](double x) { return static_cast<float>(x); };
    return {.beta1 = f(beta1),
            .one_minus_beta1 = f(1 - beta1),
            .beta2 = f(beta2),
            .one_minus_beta2 = f(1 - beta2),
            .step_size = f(lr / (1 - std::pow(beta1, t))),
            .v_correction = f(std::sqrt(1 - std::pow(beta2, t))),
            .epsilon = f(call_.number("epsilon")),
            .decay_grad = f(decoupled ? 0 : decay),
            .decay_param = f(decoupled ? 1 - lr * decay : 1)};
  }

  const OpCall call_;
  const Sweep sweep_;
  const KeptValues kept_;
  std::optional<MomentBlocks> blocks_;  // for moments that are not f32
};

class SgdKernel : public HostKernel<SgdKernel> {
 public:
  SgdKernel(const CandidateQuery& q, const KernelChoice& choice)
      : call_(q.call),
        sweep_(q.call, choice, q.threads()),
        kept_(q, choice, kSgdApply),
        has_buffer_(q.call.has_input(3)) {
    if (MomentBlocks::Takes(call_, kSgdBuffer))
      blocks_.emplace(call_, std::vector<MomentSlots>{kSgdBuffer}, q.threads());
  }

  Status Run(const KernelBuffers& b) {
    if (kept_.Keep(b)) return Status();
    const SgdNumbers numbers{static_cast<float>(LoadNumber(call_, b, 2)),
                             static_cast<float>(call_.number("momentum")),
                             static_cast<float>(call_.number("weight_decay")),
                             call_.integer("nesterov") != 0, LoadGradScale(call_, b, kSgdApply)};
    const auto in = [&](size_t i) { return static_cast<const float*>(b.inputs[i]); };
    const auto out = [&](size_t i) { return static_cast<float*>(b.outputs[i]); };
    if (blocks_) {
      blocks_->ForEach(b, [&](int64_t i, int64_t count, float* const* moments) {
        const SgdArrays arrays{in(kParam) + i, in(kGrad) + i, moments[0], out(0) + i, moments[0]};
        SgdRun(numbers, arrays, 0, count);
      });
      return Status();
    }
    sweep_.ForEachRun(in(kGrad), [&](int64_t i, int64_t count, const float* grad) {
      SgdArrays arrays{in(kParam) + i, grad, nullptr, out(0) + i, nullptr};
      if (has_buffer_) {
        arrays.buffer = in(3) + i;
        arrays.new_buffer = out(1) + i;
      }
      SgdRun(numbers, arrays, 0, count);
    });
    return Status();
  }

 private:
  const OpCall call_;
  const Sweep sweep_;
  const KeptValues kept_;
  const bool has_buffer_;
  std::optional<MomentBlocks> blocks_;  // for a buffer that is not f32
};

// Whether the moments are kept in a form of their own.
bool HasSmallMoments(const OpCall& call, const std::string& op) {
  return MomentBlocks::Takes(call, op == "adam_update" ? kAdamM : kSgdBuffer);
}

// 0 / epsilon must be 0 where the padding is.
bool KeepsPadding(const OpCall& call, LayoutId layout) {
  if (LayoutBytesOf(call.inputs[kParam], layout) == call.inputs[kParam].bytes()) return true;
  return !call.attrs.contains("epsilon") || static_cast<float>(call.number("epsilon")) > 0;
}

// All arrays in `layout`, the gradient in `grad_layout`.
void AddChoice(const CandidateQuery& q, LayoutId layout, LayoutId grad_layout, double efficiency,
               Candidates& candidates) {
  KernelChoice& choice = candidates.Add(efficiency);
  for (size_t i = 0; i < q.call.inputs.size(); ++i) {
    if (q.call.has_input(i) && q.call.inputs[i] == q.call.inputs[kParam])
      choice.input_layouts[i] = layout;
  }
  choice.input_layouts[kGrad] = grad_layout;
  choice.output_layouts.assign(q.call.outputs.size(), layout);
}

// The layout at hand is that of the parameter; a gradient in another one is wanted row-major.
const char* Offer(const CandidateQuery& q, Candidates& candidates) {
  AddChoice(q, kRowMajor, kRowMajor, 1, candidates);
  const LayoutId layout = q.available_layout(kParam);
  if (layout == kRowMajor || HasSmallMoments(q.call, q.op.name)) return nullptr;
  if (!KeepsPadding(q.call, layout)) return nullptr;
  const auto gather = BlockGather::Plan(DescOf(q.call.inputs[kParam], layout));
  if (q.available_layout(kGrad) == layout || !gather) {
    AddChoice(q, layout, layout, 1, candidates);
  } else {
    AddChoice(q, layout, kRowMajor, gather->by_rows() ? kByRows : kByTurning, candidates);
  }
  return nullptr;
}

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice& choice) {
  std::unique_ptr<Kernel> kernel;
  if (q.op.name == "adam_update") {
    kernel = std::make_unique<AdamKernel>(q, choice);
  } else {
    kernel = std::make_unique<SgdKernel>(q, choice);
  }
  return kernel;
}

}  // namespace

KernelDef OptimizerKernelDef() {
  return {.name = "cpu.{op}",
          .ops = {"sgd_update", "adam_update"},
          .dtypes = {DType::kF32},
          .offer = Offer,
          .make = Make};
}

}  // namespace ridge::cpu
