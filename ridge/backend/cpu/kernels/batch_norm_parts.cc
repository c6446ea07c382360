// The parts of batch_norm over slices in step: batch_norm_moments, batch_norm_grad_sums and
// batch_norm_grad_input, in f32 and bf16.
//
// Each is one of the sweeps of batch_norm.cc.  Threads take blocks of channels of their own where
// there are enough, else they share each block's elements and add up in the order of the parts.
// 16 bits are widened a piece at a time.
#include <array>
#include <span>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/batch_norm_blocks.h"
#include "ridge/backend/cpu/kernels/tile_program.h"

namespace ridge::cpu {
namespace {

constexpr size_t kDy = 4, kSums = 5;

using Piece = std::array<float, NormBlocks::kChunk>;

struct PartParams : NormBlocks {
  bool bf16 = false, relu = false, by_block = false;
  size_t shift = 0;  // which input; read with relu alone
  int64_t slices = 1;

  PartParams(const OpCall& call, const ChannelBlocks& layout, int threads)
      : NormBlocks(call.inputs[0].dims, layout,
                   call.inputs.size() > kDy ? call.number("epsilon") : 0),
        bf16(call.inputs[0].dtype == DType::kBF16),
        relu(call.inputs.size() > kDy && call.integer("relu") != 0),
        by_block(blocks % threads == 0 || blocks >= 4 * threads) {
    const bool has_sums = call.inputs.size() > kSums && call.inputs[kSums].rank() == 3;
    shift = has_sums ? kSums + 1 : kSums;
    if (has_sums) slices = call.inputs[kSums].dims[0];
  }

  // Elements [at, at + count) as floats, in `piece` where they are none.
  const float* Read(const void* tensor, int64_t at, int64_t count, Piece& piece) const {
    if (!bf16) return static_cast<const float*>(tensor) + at;
    WidenRow(static_cast<const uint16_t*>(tensor) + at, count, piece.data());
    return piece.data();
  }

  LaneNorm Norm(const KernelBuffers& b, int64_t of) const {
    const auto in = [&](size_t i) { return static_cast<const float*>(b.inputs[i]); };
    return NormOf(*this, of, in(1), relu ? in(shift) : nullptr, in(2), in(3));
  }
};

// A sweep over each block of channels; one thread finishes its sums.
template <typename Sums, typename Sweep, typename Finish>
void SumBlocks(const PartParams& p, int threads, void* workspace, const Sweep& sweep,
               const Finish& finish) {
  if (p.by_block) {
    ParallelFor(threads, p.blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        Sums sums;
        sweep(block, Range{0, p.items()}, sums);
        finish(block, std::span<const Sums>(&sums, 1));
      }
    });
    return;
  }
  for (int64_t block = 0; block < p.blocks; ++block)
    finish(block, SweepByParts<Sums>(p, block, threads, workspace, sweep));
}

class MomentsKernel : public HostKernel<MomentsKernel> {
 public:
  MomentsKernel(const PartParams& params, int threads) : p_(params), threads_(threads) {}

  Status Run(const KernelBuffers& b) {
    SumBlocks<LaneMoments>(
        p_, threads_, b.workspace,
        [&](int64_t block, Range items, LaneMoments& moments) {
          Piece piece;
          ForItems(p_, block, items, [&](int64_t at, int64_t count) {
            AddMoments(p_.Read(b.inputs[0], at, count, piece), count, moments);
          });
        },
        [&](int64_t block, std::span<const LaneMoments> parts) {
          WriteMoments(p_, block, parts, static_cast<float*>(b.outputs[0]),
                       static_cast<float*>(b.outputs[1]));
        });
    return Status();
  }

 private:
  const PartParams p_;
  const int threads_;
};

class GradSumsKernel : public HostKernel<GradSumsKernel> {
 public:
  GradSumsKernel(const PartParams& params, int threads) : p_(params), threads_(threads) {}

  Status Run(const KernelBuffers& b) {
    SumBlocks<LaneGradSums>(
        p_, threads_, b.workspace,
        [&](int64_t block, Range items, LaneGradSums& sums) {
          const LaneNorm norm = p_.Norm(b, block);
          Piece x, dy;
          ForItems(p_, block, items, [&](int64_t at, int64_t count) {
            AddGradSums(p_.Read(b.inputs[0], at, count, x), p_.Read(b.inputs[kDy], at, count, dy),
                        count, norm, p_.relu, sums);
          });
        },
        [&](int64_t block, std::span<const LaneGradSums> parts) { Write(b, block, parts); });
    return Status();
  }

 private:
  // dscale = sum(g * n), dshift = sum(g).
  void Write(const KernelBuffers& b, int64_t block, std::span<const LaneGradSums> parts) const {
    for (int64_t k = 0; k < p_.ChannelsOf(block); ++k) {
      const int64_t c = block * p_.block + k;
      const ChannelGradSums sums = SumsOf(p_, k, parts);
      const double rstd = InverseDeviation(p_, static_cast<const float*>(b.inputs[3])[c]);
      static_cast<float*>(b.outputs[0])[c] = static_cast<float>(sums.gx * rstd);
      static_cast<float*>(b.outputs[1])[c] = static_cast<float>(sums.g);
    }
  }

  const PartParams p_;
  const int threads_;
};

class GradInputKernel : public HostKernel<GradInputKernel> {
 public:
  GradInputKernel(const PartParams& params, int threads) : p_(params), threads_(threads) {}

  Status Run(const KernelBuffers& b) {
    // Plane by plane in the order of memory; a block's factors are made again for each.
    ParallelFor(threads_, p_.batch * p_.blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) Write(b, plane);
    });
    return Status();
  }

 private:
  void Write(const KernelBuffers& b, int64_t plane) const {
    const int64_t block = plane % p_.blocks;
    const LaneNorm norm = p_.Norm(b, block);
    const LaneGrad grad = GradOf(b, block);
    Piece x, dy, dx;
    for (int64_t i = 0; i < p_.run; i += NormBlocks::kChunk) {
      const int64_t at = plane * p_.run + i, count = std::min(NormBlocks::kChunk, p_.run - i);
      float* to = p_.bf16 ? dx.data() : static_cast<float*>(b.outputs[0]) + at;
      NormGradPlane(p_.Read(b.inputs[0], at, count, x), p_.Read(b.inputs[kDy], at, count, dy),
                    count, norm, grad, p_.relu, /*stream=*/false, to);
      if (p_.bf16) RoundRow(to, count, static_cast<uint16_t*>(b.outputs[0]) + at);
    }
  }

  // Means over all slices, added in their order.
  LaneGrad GradOf(const KernelBuffers& b, int64_t block) const {
    LaneGrad grad;
    const auto* sums = static_cast<const float*>(b.inputs[kSums]);
    const double elements = p_.elements() * static_cast<double>(p_.slices);
    for (int64_t k = 0; k < p_.ChannelsOf(block); ++k) {
      const int64_t c = block * p_.block + k;
      double dscale = 0, dshift = 0;
      for (int64_t s = 0; s < p_.slices; ++s) {
        dscale += double{sums[(s * 2) * p_.channels + c]};
        dshift += double{sums[(s * 2 + 1) * p_.channels + c]};
      }
      const double rstd = InverseDeviation(p_, static_cast<const float*>(b.inputs[3])[c]);
      for (int64_t lane = k; lane < kNormLanes; lane += p_.block) {
        grad.mean_g[lane] = static_cast<float>(dshift / elements);
        grad.mean_gx[lane] = static_cast<float>(dscale * rstd / elements);
      }
    }
    return grad;
  }

  const PartParams p_;
  const int threads_;
};

bool HasDy(const OpCall& call) { return call.inputs.size() > kDy; }

// Rows of features are refused: a plane would be one element.
const char* Refuse(const CandidateQuery& q) {
  return q.call.inputs[0].rank() < 3 ? refusal::kRank : nullptr;
}

int64_t WorkspaceBytes(const CandidateQuery& q) {
  return q.threads() * static_cast<int64_t>(std::max(sizeof(LaneMoments), sizeof(LaneGradSums)));
}

// In each layout in which x or dy is at hand.
const char* Offer(const CandidateQuery& q, Candidates& candidates) {
  std::vector<LayoutId> layouts = {q.available_layout(0)};
  if (HasDy(q.call) && q.available_layout(kDy) != layouts[0])
    layouts.push_back(q.available_layout(kDy));
  const char* reason = refusal::kLayout;
  for (const LayoutId layout : layouts) {
    const auto blocks = ChannelBlocksOf(q.call.inputs[0].dims, layout);
    if (!blocks || kNormLanes % blocks->block != 0) continue;
    KernelChoice& choice = candidates.Add();
    choice.input_layouts[0] = layout;
    if (HasDy(q.call)) choice.input_layouts[kDy] = layout;
    if (q.op.name == "batch_norm_grad_input") choice.output_layouts[0] = layout;
    reason = nullptr;
  }
  return reason;
}

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice& choice) {
  const int threads = q.threads();
  const PartParams params(q.call, *ChannelBlocksOf(q.call.inputs[0].dims, choice.input_layouts[0]),
                          threads);
  std::unique_ptr<Kernel> kernel;
  if (q.op.name == "batch_norm_moments") {
    kernel = std::make_unique<MomentsKernel>(params, threads);
  } else if (q.op.name == "batch_norm_grad_sums") {
    kernel = std::make_unique<GradSumsKernel>(params, threads);
  } else {
    kernel = std::make_unique<GradInputKernel>(params, threads);
  }
  return kernel;
}

// Mean and variance of a batch from those of its slices, in f64.
class CombineKernel : public HostKernel<CombineKernel> {
 public:
  CombineKernel(const OpCall& call, int)
      : slices_(call.inputs[0].dims[0]), channels_(call.inputs[0].dims[2]) {}

  Status Run(const KernelBuffers& b) {
    const auto* parts = static_cast<const float*>(b.inputs[0]);
    for (int64_t c = 0; c < channels_; ++c) {
      const auto part = [&](int64_t s, int64_t k) {
        return double{parts[(s * 2 + k) * channels_ + c]};
      };
      double mean = 0, var = 0;
      for (int64_t s = 0; s < slices_; ++s) mean += part(s, 0);
      mean /= static_cast<double>(slices_);
      for (int64_t s = 0; s < slices_; ++s) {
        const double distance = part(s, 0) - mean;
        var += part(s, 1) + distance * distance;
      }
      static_cast<float*>(b.outputs[0])[c] = static_cast<float>(mean);
      static_cast<float*>(b.outputs[1])[c] = static_cast<float>(var / static_cast<double>(slices_));
    }
    return Status();
  }

 private:
  const int64_t slices_, channels_;
};

}  // namespace

KernelDef BatchNormPartsKernelDef() {
  return {.name = "cpu.{op}",
          .ops = {"batch_norm_moments", "batch_norm_grad_sums", "batch_norm_grad_input"},
          .dtypes = {DType::kF32, DType::kBF16},
          .refuse = Refuse,
          .workspace_bytes = WorkspaceBytes,
          .offer = Offer,
          .make = Make};
}

KernelDef BatchNormCombineKernelDef() {
  return {.name = "cpu.batch_norm_combine",
          .ops = {"batch_norm_combine"},
          .dtypes = {DType::kF32},
          .one_dtype = true,
          .make = MakeKernel<CombineKernel>};
}

}  // namespace ridge::cpu
