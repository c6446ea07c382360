// batch_norm, its gradient and its inference form in f32, with relu and a
// residual's sum in the same sweep.
//
// A block of channels at a time: its moments, then its normalized values while
// x still is in the last cache, so x comes from memory once.  Threads take
// blocks of channels of their own where those are many and small, else they
// share each block's elements and add up in the order of the parts.  The
// gradient is the same two sweeps over x and dy; the mask of relu is the sign
// of y, recomputed from x, so neither y nor the masked gradient is read or
// written.
#include <algorithm>
#include <span>

#include "hwy/cache_control.h"
#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/batch_norm_blocks.h"
#include "ridge/backend/cpu/nominal_profile.h"

namespace ridge::cpu {
namespace {

// Of all threads' blocks together, that stay in the last cache between the
// sweeps.
constexpr int64_t kMostBytesAtOnce = int64_t{12} << 20;

enum class Kind { kForward, kInference, kGrad };

Kind KindOf(const OpDef& op) {
  if (op.name == "batch_norm_grad") return Kind::kGrad;
  return op.name == "batch_norm" ? Kind::kForward : Kind::kInference;
}

// Where the extra input of the epilogue, or the gradient, is among the inputs.
size_t SecondTensor(Kind kind) { return kind == Kind::kForward ? 3 : kind == Kind::kGrad ? 4 : 5; }

struct NormParams : NormBlocks {
  bool relu = false;
  bool by_block = false;  // threads take whole blocks

  NormParams(const OpCall& call, Kind kind, const ChannelBlocks& layout, int threads)
      : NormBlocks(call.inputs[0].dims, layout, call.number("epsilon")) {
    relu =
        kind == Kind::kGrad ? call.integer("relu") != 0 : call.text("epilogue").ends_with("relu");
    const int64_t tensors = kind == Kind::kGrad ? 2 : 1;
    const int64_t at_once = tensors * threads * batch * run * int64_t{sizeof(float)};
    by_block = (blocks % threads == 0 || blocks >= 4 * threads) && at_once <= kMostBytesAtOnce;
  }

  // Results larger than the last cache go past it, unless they overwrite an operand.
  bool Streams(const float* to, const float* a, const float* b) const {
    const int64_t bytes = batch * blocks * run * int64_t{sizeof(float)};
    return block == kNormLanes && bytes > kLastCacheBytes && to != a && to != b;
  }
};

// What the two sweeps over a block of channels have in common: the first one
// makes sums, which are finished by one thread, the second one writes.
template <typename Sums, typename Sweep, typename Finish, typename Write>
void ForBlocks(const NormParams& p, int threads, void* workspace, const Sweep& sweep,
               const Finish& finish, const Write& write) {
  using Finished = decltype(finish(int64_t{0}, std::span<const Sums>()));
  const Range all = {0, p.items()};
  if (p.by_block) {
    ParallelFor(threads, p.blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        Sums sums;
        sweep(block, all, sums);
        write(block, all, finish(block, std::span<const Sums>(&sums, 1)));
      }
    });
    return;
  }
  for (int64_t block = 0; block < p.blocks; ++block) {
    const Finished finished =
        finish(block, SweepByParts<Sums>(p, block, threads, workspace, sweep));
    ForEachPart(threads,
                [&](int part) { write(block, PartOf(p.items(), threads, part), finished); });
  }
}

class BatchNormForward : public HostKernel<BatchNormForward> {
 public:
  BatchNormForward(const NormParams& params, int threads) : p_(params), threads_(threads) {}

  Status Run(const KernelBuffers& b) {
    const auto* x = static_cast<const float*>(b.inputs[0]);
    const auto* scale = static_cast<const float*>(b.inputs[1]);
    const auto* shift = static_cast<const float*>(b.inputs[2]);
    const auto* extra = b.inputs.size() > 3 ? static_cast<const float*>(b.inputs[3]) : nullptr;
    auto* y = static_cast<float*>(b.outputs[0]);
    const bool stream = p_.Streams(y, x, extra);
    auto* mean = static_cast<float*>(b.outputs[1]);
    auto* var = static_cast<float*>(b.outputs[2]);
    ForBlocks<LaneMoments>(
        p_, threads_, b.workspace,
        [&](int64_t block, Range items, LaneMoments& moments) {
          ForItems(p_, block, items,
                   [&](int64_t at, int64_t count) { AddMoments(x + at, count, moments); });
        },
        [&](int64_t block, std::span<const LaneMoments> parts) {
          WriteMoments(p_, block, parts, mean, var);
          return NormOf(p_, block, scale, shift, mean, var);
        },
        [&](int64_t block, Range items, const LaneNorm& norm) {
          ForItems(p_, block, items, [&](int64_t at, int64_t count) {
            NormalizePlane(x + at, extra == nullptr ? nullptr : extra + at, count, norm, p_.relu,
                           stream, y + at);
          });
          if (stream) hwy::FlushStream();
        });
    return Status();
  }

 private:
  const NormParams p_;
  const int threads_;
};

class BatchNormInference : public HostKernel<BatchNormInference> {
 public:
  BatchNormInference(const NormParams& params, int threads) : p_(params), threads_(threads) {}

  Status Run(const KernelBuffers& b) {
    const auto in = [&](size_t i) {
      return i < b.inputs.size() ? static_cast<const float*>(b.inputs[i]) : nullptr;
    };
    const float *x = in(0), *extra = in(5);
    auto* y = static_cast<float*>(b.outputs[0]);
    const bool stream = p_.Streams(y, x, extra);
    // Item by item in the order of memory; a block's factors are recomputed for
    // each plane.
    ParallelFor(threads_, p_.batch * p_.blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        const LaneNorm norm = NormOf(p_, plane % p_.blocks, in(1), in(2), in(3), in(4));
        const int64_t at = plane * p_.run;
        NormalizePlane(x + at, extra == nullptr ? nullptr : extra + at, p_.run, norm, p_.relu,
                       stream, y + at);
      }
      if (stream) hwy::FlushStream();
    });
    return Status();
  }

 private:
  const NormParams p_;
  const int threads_;
};

class BatchNormGrad : public HostKernel<BatchNormGrad> {
 public:
  BatchNormGrad(const NormParams& params, int threads) : p_(params), threads_(threads) {}

  Status Run(const KernelBuffers& b) {
    const auto in = [&](size_t i) {
      return i < b.inputs.size() ? static_cast<const float*>(b.inputs[i]) : nullptr;
    };
    const float *x = in(0), *dy = in(4);
    auto* dx = static_cast<float*>(b.outputs[0]);
    const bool stream = p_.Streams(dx, x, dy);
    struct Finished {
      LaneNorm norm;
      LaneGrad grad;
    };
    const auto norm_of = [&](int64_t block) {
      return NormOf(p_, block, in(1), in(5), in(2), in(3));
    };
    ForBlocks<LaneGradSums>(
        p_, threads_, b.workspace,
        [&](int64_t block, Range items, LaneGradSums& sums) {
          const LaneNorm norm = norm_of(block);
          ForItems(p_, block, items, [&](int64_t at, int64_t count) {
            AddGradSums(x + at, dy + at, count, norm, p_.relu, sums);
          });
        },
        [&](int64_t block, std::span<const LaneGradSums> parts) {
          return Finished{norm_of(block), Finish(block, parts, in(3), b)};
        },
        [&](int64_t block, Range items, const Finished& f) {
          ForItems(p_, block, items, [&](int64_t at, int64_t count) {
            NormGradPlane(x + at, dy + at, count, f.norm, f.grad, p_.relu, stream, dx + at);
          });
          if (stream) hwy::FlushStream();
        });
    return Status();
  }

 private:
  // dshift = sum(g), dscale = sum(g * n), and what dx takes of them.
  LaneGrad Finish(int64_t block, std::span<const LaneGradSums> parts, const float* var,
                  const KernelBuffers& b) const {
    LaneGrad grad;
    for (int64_t k = 0; k < p_.ChannelsOf(block); ++k) {
      const int64_t c = block * p_.block + k;
      const ChannelGradSums sums = SumsOf(p_, k, parts);
      const double rstd = InverseDeviation(p_, var[c]);
      static_cast<float*>(b.outputs[1])[c] = static_cast<float>(sums.gx * rstd);
      static_cast<float*>(b.outputs[2])[c] = static_cast<float>(sums.g);
      for (int64_t lane = k; lane < kNormLanes; lane += p_.block) {
        grad.mean_g[lane] = static_cast<float>(sums.g / p_.elements());
        grad.mean_gx[lane] = static_cast<float>(sums.gx * rstd * rstd / p_.elements());
      }
    }
    return grad;
  }

  const NormParams p_;
  const int threads_;
};

bool TakesEpilogue(const CandidateQuery& q, Kind kind) {
  if (kind == Kind::kGrad) return true;
  const std::string& epilogue = q.call.text("epilogue");
  return epilogue.empty() || epilogue == "relu" || epilogue == "add" || epilogue == "add,relu";
}

// Images in f32 only: 16 bits and rows of features have plain kernels.
bool Fuses(const OpCall& call) {
  constexpr int64_t kLeastPlane = 16;  // elements of an image
  const TensorType& x = call.inputs[0];
  const auto plane = x.dims.begin() + std::min<int64_t>(2, x.rank());
  return x.dtype == DType::kF32 && x.rank() > 2 &&
         ElementCount(Dims(plane, x.dims.end())) >= kLeastPlane;
}

// Rows of features are refused: a plane would be one element.
const char* Refuse(const CandidateQuery& q) {
  if (q.call.inputs[0].rank() < 3) return refusal::kRank;
  return TakesEpilogue(q, KindOf(q.op)) ? nullptr : refusal::kEpilogue;
}

int64_t WorkspaceBytes(const CandidateQuery& q) {
  return q.threads() * static_cast<int64_t>(std::max(sizeof(LaneMoments), sizeof(LaneGradSums)));
}

// Layouts in which x, or what goes with it, is at hand.
std::vector<LayoutId> LayoutsOf(const CandidateQuery& q, Kind kind) {
  std::vector<LayoutId> layouts = {q.available_layout(0)};
  const size_t second = SecondTensor(kind);
  if (second < q.call.inputs.size() && q.available_layout(second) != layouts[0])
    layouts.push_back(q.available_layout(second));
  return layouts;
}

const char* Offer(const CandidateQuery& q, Candidates& candidates) {
  const Kind kind = KindOf(q.op);
  const char* reason = refusal::kLayout;
  for (const LayoutId layout : LayoutsOf(q, kind)) {
    const auto blocks = ChannelBlocksOf(q.call.inputs[0].dims, layout);
    if (!blocks || kNormLanes % blocks->block != 0) continue;
    KernelChoice& choice = candidates.Add();
    choice.input_layouts[0] = choice.output_layouts[0] = layout;
    const size_t second = SecondTensor(kind);
    if (second < q.call.inputs.size()) choice.input_layouts[second] = layout;
    reason = nullptr;
  }
  return reason;
}

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice& choice) {
  const Kind kind = KindOf(q.op);
  const int threads = q.threads();
  const ChannelBlocks blocks = *ChannelBlocksOf(q.call.inputs[0].dims, choice.input_layouts[0]);
  const NormParams params(q.call, kind, blocks, threads);
  std::unique_ptr<Kernel> kernel;
  if (kind == Kind::kForward) kernel = std::make_unique<BatchNormForward>(params, threads);
  if (kind == Kind::kInference) kernel = std::make_unique<BatchNormInference>(params, threads);
  if (kind == Kind::kGrad) kernel = std::make_unique<BatchNormGrad>(params, threads);
  return kernel;
}

}  // namespace

KernelDef BatchNormKernelDef() {
  return {.name = "cpu.batch_norm",
          .ops = {"batch_norm", "batch_norm_grad", "batch_norm_inference"},
          .dtypes = {DType::kF32},
          .one_dtype = true,
          .refuse = Refuse,
          .fuses = Fuses,
          .workspace_bytes = WorkspaceBytes,
          .offer = Offer,
          .make = Make};
}

}  // namespace ridge::cpu
