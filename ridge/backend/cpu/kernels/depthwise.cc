// conv_grad_weight of depthwise convolutions (one input and one output a group), f32, 2-D, on
// channels in blocks (nChw16c, nChw8c); dw is row-major.
//
// oneDNN has no fast kernel for 5x5 and 7x7: its packing GEMM reaches 1.6 to 3.4 GFLOP/s.  Here a
// block of channels is a vector, each tap a sum in a register (depthwise_simd.cc).  Rows of x are
// copied between zeros first when there is padding along them.  The work is (block of channels,
// image); parts take runs of it in that order, each sums into arrays of its own, and these are
// added in order of the part.
#include <algorithm>
#include <cstring>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/depthwise_rows.h"
#include "ridge/backend/cpu/layouts.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/graph/ops/shared/conv.h"

namespace ridge::cpu {
namespace {

constexpr LayoutId kBlocks16 = static_cast<LayoutId>(dnnl_aBcd16b);

// What the padded rows and the sums of all parts take.
struct DepthwiseParams {
  DepthwiseShape shape;
  int64_t batch = 0, channels = 0, blocks = 0;
  bool bias = false, copies = false;

  DepthwiseParams(const OpCall& call, const ChannelBlocks& channel_blocks) {
    const ConvGeometry g = GradWeightGeometryOf(call);
    shape.y = g.window.y();
    shape.x = g.window.x();
    shape.block = channel_blocks.block;
    batch = g.batch;
    channels = g.groups;
    blocks = channel_blocks.blocks;
    bias = call.integer("bias") != 0;
    copies = shape.x.pad_begin > 0 || shape.x.pad_end > 0;
    shape.row_elements = RowWidth() * shape.block;
  }

  // Of the input with its padding, and no further than a tap reaches.
  int64_t RowWidth() const {
    return copies ? shape.x.input + shape.x.pad_begin + shape.x.pad_end : shape.x.input;
  }
  int64_t image_elements() const { return shape.y.input * shape.x.input * shape.block; }
  int64_t output_elements() const { return shape.y.output * shape.x.output * shape.block; }
  int64_t sums() const { return (shape.taps() + (bias ? 1 : 0)) * shape.block; }  // of a block
  int64_t part_sums() const { return blocks * sums(); }
  int64_t padded_elements() const { return copies ? shape.y.input * shape.row_elements : 0; }
  int64_t workspace_bytes(int threads) const {
    return threads * (part_sums() + padded_elements()) * static_cast<int64_t>(sizeof(float));
  }
};

class DepthwiseGradWeight : public HostKernel<DepthwiseGradWeight> {
 public:
  DepthwiseGradWeight(const DepthwiseParams& params, int threads) : p_(params), threads_(threads) {}

  Status Run(const KernelBuffers& b) {
    auto* sums = static_cast<float*>(b.workspace);
    float* padded = sums + threads_ * p_.part_sums();
    ForEachPart(threads_, [&](int part) {
      SumPart(b, part, sums + part * p_.part_sums(), padded + part * p_.padded_elements());
    });
    auto* dw = static_cast<float*>(b.outputs[0]);
    float* dbias = p_.bias ? static_cast<float*>(b.outputs[1]) : nullptr;
    for (int64_t c = 0; c < p_.channels; ++c) WriteChannel(sums, c, dw, dbias);
    return Status();
  }

 private:
  void SumPart(const KernelBuffers& b, int part, float* sums, float* padded) const {
    std::fill_n(sums, p_.part_sums(), 0.0F);
    std::fill_n(padded, p_.padded_elements(), 0.0F);
    const Range items = PartOf(p_.blocks * p_.batch, threads_, part);
    for (int64_t item = items.begin; item < items.end; ++item) {
      const int64_t block = item / p_.batch, plane = item % p_.batch * p_.blocks + block;
      const float* x = static_cast<const float*>(b.inputs[0]) + plane * p_.image_elements();
      const float* dy = static_cast<const float*>(b.inputs[1]) + plane * p_.output_elements();
      float* dw = sums + block * p_.sums();
      float* dbias = p_.bias ? dw + p_.shape.taps() * p_.shape.block : nullptr;
      if (p_.copies) CopyRows(x, padded);
      AddDepthwiseGradWeight(p_.shape, p_.copies ? padded : x, dy, dw, dbias);
    }
  }

  void CopyRows(const float* x, float* padded) const {
    const int64_t row = p_.shape.x.input * p_.shape.block;
    float* to = padded + p_.shape.x.pad_begin * p_.shape.block;
    for (int64_t y = 0; y < p_.shape.y.input; ++y) {
      std::memcpy(to + y * p_.shape.row_elements, x + y * row,
                  static_cast<size_t>(row) * sizeof(float));
    }
  }

  void WriteChannel(const float* sums, int64_t c, float* dw, float* dbias) const {
    const int64_t taps = p_.shape.taps(), block = p_.shape.block;
    for (int64_t tap = 0; tap < taps + (p_.bias ? 1 : 0); ++tap) {
      const float* from = sums + c / block * p_.sums() + tap * block + c % block;
      float total = 0;
      for (int part = 0; part < threads_; ++part) total += from[part * p_.part_sums()];
      (tap < taps ? dw[c * taps + tap] : dbias[c]) = total;
    }
  }

  const DepthwiseParams p_;
  const int threads_;
};

// Where x or dy have blocks already, those; else blocks of 16.
LayoutId WantedLayout(const CandidateQuery& q) {
  for (size_t i = 0; i < 2; ++i) {
    const auto blocks = ChannelBlocksOf(q.call.inputs[i].dims, q.available_layout(i));
    if (blocks && (blocks->block == 8 || blocks->block == 16)) return q.available_layout(i);
  }
  return kBlocks16;
}

const char* Refuse(const CandidateQuery& q) {
  if (q.call.inputs[0].rank() != 4) return refusal::kRank;
  const ConvGeometry g = GradWeightGeometryOf(q.call);
  const bool depthwise = g.group_inputs == 1 && g.group_outputs == 1 && g.groups >= 4;
  return depthwise ? nullptr : refusal::kAttribute;
}

const char* Offer(const CandidateQuery& q, Candidates& candidates) {
  const LayoutId layout = WantedLayout(q);
  const DepthwiseParams params(q.call, *ChannelBlocksOf(q.call.inputs[0].dims, layout));
  KernelChoice& choice = candidates.Add();
  choice.input_layouts = {layout, layout};
  choice.workspace_bytes = params.workspace_bytes(q.threads());
  return nullptr;
}

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice& choice) {
  const auto blocks = ChannelBlocksOf(q.call.inputs[0].dims, choice.input_layouts.at(0));
  if (!blocks) return Status(ErrorCode::kInternal, q.call.where + ": no blocks of channels");
  return std::unique_ptr<Kernel>(
      std::make_unique<DepthwiseGradWeight>(DepthwiseParams(q.call, *blocks), q.threads()));
}

}  // namespace

KernelDef DepthwiseGradWeightKernelDef() {
  return {.name = "cpu.depthwise_grad_weight",
          .ops = {"conv_grad_weight"},
          .dtypes = {DType::kF32},
          .one_dtype = true,
          .refuse = Refuse,
          .efficiency = 0.3,
          .offer = Offer,
          .make = Make};
}

}  // namespace ridge::cpu
