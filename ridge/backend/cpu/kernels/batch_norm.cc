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
#include <cmath>
#include <span>

#include "hwy/cache_control.h"
#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/norm_planes.h"
#include "ridge/backend/cpu/layouts.h"
#include "ridge/backend/cpu/nominal_profile.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/core/rounding.h"

namespace ridge::cpu {
namespace {

constexpr int64_t kChunk = 4096;  // elements of one piece of a plane, a multiple of kNormLanes
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

struct NormParams {
  int64_t batch = 1, channels = 1, blocks = 1, block = 1;
  int64_t run = 1;  // elements of a plane: one sample's block of channels
  double epsilon = 0;
  bool relu = false;
  bool by_block = false;  // threads take whole blocks

  NormParams(const OpCall& call, Kind kind, const ChannelBlocks& layout, int threads) {
    const Dims& dims = call.inputs[0].dims;
    batch = dims[0];
    channels = dims[1];
    blocks = layout.blocks;
    block = layout.block;
    run = block;
    for (size_t d = 2; d < dims.size(); ++d) run *= dims[d];
    epsilon = call.number("epsilon");
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

  int64_t pieces() const { return CeilDiv(run, kChunk); }  // of a plane
  int64_t items() const { return batch * pieces(); }       // of a block of channels
};

// Calls f(offset, count) for items of a block of channels.
template <typename F>
void ForItems(const NormParams& p, int64_t block, Range items, const F& f) {
  for (int64_t item = items.begin; item < items.end; ++item) {
    const int64_t plane = item / p.pieces() * p.blocks + block;
    const int64_t begin = item % p.pieces() * kChunk;
    f(plane * p.run + begin, std::min(kChunk, p.run - begin));
  }
}

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
  auto* parts = static_cast<Sums*>(workspace);
  for (int64_t block = 0; block < p.blocks; ++block) {
    ForEachPart(threads, [&](int part) {
      parts[part] = Sums();
      sweep(block, PartOf(p.items(), threads, part), parts[part]);
    });
    const Finished finished =
        finish(block, std::span<const Sums>(parts, static_cast<size_t>(threads)));
    ForEachPart(threads,
                [&](int part) { write(block, PartOf(p.items(), threads, part), finished); });
  }
}

// Scale, shift and statistics of a block of channels, spread over the lanes;
// lanes of the padding give 0.
LaneNorm NormOf(const NormParams& p, int64_t block, const float* scale, const float* shift,
                const float* mean, const float* var) {
  LaneNorm norm;
  for (int64_t lane = 0; lane < kNormLanes; ++lane) {
    const int64_t c = block * p.block + lane % p.block;
    if (c >= p.channels) continue;
    norm.mean[lane] = mean[c];
    norm.slope[lane] = static_cast<float>(double{scale[c]} / std::sqrt(double{var[c]} + p.epsilon));
    norm.shift[lane] = shift == nullptr ? 0 : shift[c];
  }
  return norm;
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
          Finish(block, parts, mean, var);
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
  void Finish(int64_t block, std::span<const LaneMoments> parts, float* mean, float* var) const {
    for (int64_t k = 0; k < p_.block && block * p_.block + k < p_.channels; ++k) {
      double count = 0, average = 0, m2 = 0;
      for (const LaneMoments& part : parts) {
        for (int64_t lane = k; lane < kNormLanes; lane += p_.block) {
          if (part.count[lane] == 0) continue;
          const double total = count + part.count[lane], share = part.count[lane] / total;
          const double distance = part.mean[lane] - average;
          m2 += part.m2[lane] + distance * distance * count * share;
          average += distance * share;
          count = total;
        }
      }
      mean[block * p_.block + k] = static_cast<float>(average);
      var[block * p_.block + k] = static_cast<float>(m2 / std::max(count, 1.0));
    }
  }

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
    const double elements = static_cast<double>(p_.batch * (p_.run / p_.block));
    for (int64_t k = 0; k < p_.block && block * p_.block + k < p_.channels; ++k) {
      const int64_t c = block * p_.block + k;
      double g = 0, gx = 0;
      for (const LaneGradSums& part : parts) {
        for (int64_t lane = k; lane < kNormLanes; lane += p_.block) {
          g += part.g[lane];
          gx += part.gx[lane];
        }
      }
      const double rstd = 1 / std::sqrt(double{var[c]} + p_.epsilon);
      static_cast<float*>(b.outputs[1])[c] = static_cast<float>(gx * rstd);
      static_cast<float*>(b.outputs[2])[c] = static_cast<float>(g);
      for (int64_t lane = k; lane < kNormLanes; lane += p_.block) {
        grad.mean_g[lane] = static_cast<float>(g / elements);
        grad.mean_gx[lane] = static_cast<float>(gx * rstd * rstd / elements);
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
