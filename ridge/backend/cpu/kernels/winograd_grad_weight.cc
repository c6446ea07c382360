// conv_grad_weight by Winograd's F(4x4, 3x3): dw = G^T [sum over tiles of (B^T x B) (A dy A^T)] G.
//
// Split by tiles, each thread sums its own tiles into its own gradient of the transformed weights,
// and these are added in thread order.  Split by panels, the tiles are transformed once for all
// threads and each thread sums all tiles for its own channels, so nothing has to be added.  The
// bias gradient is summed beside the transform of dy, by thread, and added in thread order.
#include "oneapi/dnnl/dnnl.hpp"
#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/winograd.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/core/rounding.h"

namespace ridge::cpu {
namespace {

constexpr auto kBlocked = static_cast<LayoutId>(dnnl_aBcd16b);

// The inner channels of one task when threads split the panels: so many blocks.
constexpr int64_t kTaskInnerBlocks = 4;

struct WinogradParams {
  WinogradShape shape;
  WinogradSplit split;
  bool bias = false;

  WinogradParams(const OpCall& call, int threads)
      : shape(WinogradForward(GradWeightGeometryOf(call))),
        split(SplitWinogradGrad(shape, threads)),
        bias(call.integer("bias") != 0) {}

  int64_t PanelWidth(int64_t panel) const {
    return std::min(split.panel_blocks, shape.outer_blocks() - split.FirstBlock(panel));
  }
  // Of the gradient of a panel's transformed weights.
  int64_t PanelFloats(int64_t inner_blocks) const {
    return kFrequencies * WeightStride(inner_blocks, split.panel_blocks);
  }
  int64_t InputFloats() const {
    return kFrequencies * FrequencyStride(shape.inner_blocks(), split.rows);
  }
  // Each panel has frequencies of its own.
  int64_t OutputFloats() const {
    return split.panels * kFrequencies * FrequencyStride(split.panel_blocks, split.rows);
  }
  float* Output(float* m, int64_t panel) const {
    return m + panel * kFrequencies * FrequencyStride(split.panel_blocks, split.rows);
  }
  int64_t BiasFloats() const { return shape.outer_blocks() * kWinogradBlock; }
  int64_t TileFloats() const { return InputFloats() + OutputFloats(); }
  int64_t TasksOfPanel() const { return CeilDiv(shape.inner_blocks(), kTaskInnerBlocks); }

  // Tiles; and the gradient of all weights when it is summed over chunks.
  bool KeepsGradient() const { return split.by_tiles || split.chunks > 1; }
  int64_t GradientFloats() const {
    return KeepsGradient() ? split.panels * PanelFloats(shape.inner_blocks())
                           : PanelFloats(kTaskInnerBlocks);
  }
  int64_t SharedFloats() const {
    if (split.by_tiles) return 0;
    return TileFloats() + (KeepsGradient() ? GradientFloats() : 0);
  }
  int64_t PrivateFloats() const {
    if (split.by_tiles) return BiasFloats() + GradientFloats() + TileFloats();
    return BiasFloats() + (KeepsGradient() ? 0 : GradientFloats());
  }
  int64_t WorkspaceBytes() const { return 4 * (SharedFloats() + split.threads * PrivateFloats()); }
};

class WinogradGradWeight : public HostKernel<WinogradGradWeight> {
 public:
  explicit WinogradGradWeight(const WinogradParams& params) : p_(params) {}

  Status Run(const KernelBuffers& b) {
    x_ = static_cast<const float*>(b.inputs[0]);
    dy_ = static_cast<const float*>(b.inputs[1]);
    dw_ = static_cast<float*>(b.outputs[0]);
    shared_ = static_cast<float*>(b.workspace);
    private_ = shared_ + p_.SharedFloats();
    if (p_.split.by_tiles) {
      RunByTiles();
    } else {
      RunByPanels();
    }
    if (p_.bias) AddBias(static_cast<float*>(b.outputs[1]));
    return Status();
  }

 private:
  // A thread's memory: sums of the bias, then its gradient and tiles.
  float* BiasSums(int part) const { return private_ + part * p_.PrivateFloats(); }
  float* Gradient(int part) const { return BiasSums(part) + p_.BiasFloats(); }

  void TransformTiles(const TileRun& tiles, float* v, float* m, int part) const {
    WinogradInput(p_.shape, x_, tiles, v);
    for (int64_t panel = 0; panel < p_.split.panels; ++panel) {
      const int64_t first = p_.split.FirstBlock(panel);
      WinogradGradOutput(p_.shape, dy_, tiles, first, p_.PanelWidth(panel), p_.Output(m, panel),
                         BiasSums(part) + first * kWinogradBlock);
    }
  }

  // Adds tiles to the gradient `u` of a panel's weights for inner blocks from `first_inner` on.
  void Multiply(const TileRun& tiles, int64_t panel, int64_t first_inner, int64_t inner_blocks,
                const float* v, float* m, bool add, float* u, int64_t u_stride) const {
    const int64_t blocks = p_.PanelWidth(panel);
    const GradProduct product{.v_stride = FrequencyStride(p_.shape.inner_blocks(), tiles.rows),
                              .m_stride = FrequencyStride(blocks, tiles.rows),
                              .u_stride = u_stride,
                              .inner_blocks = inner_blocks,
                              .blocks = blocks,
                              .count = tiles.count,
                              .rows = tiles.rows,
                              .add = add};
    WinogradGradProduct(product, v + first_inner * tiles.rows * kWinogradBlock, p_.Output(m, panel),
                        u);
  }

  // In the gradient of all weights: where a panel begins, its floats from one frequency to the
  // next, and from one block of inner channels to the next.
  int64_t PanelAt(int64_t panel) const { return panel * p_.PanelFloats(p_.shape.inner_blocks()); }
  int64_t InnerStride(int64_t panel) const {
    return kWinogradBlock * p_.PanelWidth(panel) * kWinogradBlock;
  }
  int64_t PanelStride(int64_t panel) const {
    return WeightStride(p_.shape.inner_blocks(), p_.PanelWidth(panel));
  }

  void RunByTiles() const {
    const WinogradSplit& s = p_.split;
    ForEachPart(s.threads, [&](int part) {
      std::fill_n(BiasSums(part), p_.BiasFloats(), 0.0F);
      float *u = Gradient(part), *v = u + p_.GradientFloats(), *m = v + p_.InputFloats();
      const Range own = PartOf(p_.shape.tiles(), s.threads, part);
      if (own.begin == own.end) std::fill_n(u, p_.GradientFloats(), 0.0F);
      for (int64_t first = own.begin; first < own.end; first += s.rows) {
        const TileRun tiles{first, std::min(s.rows, own.end - first), s.rows};
        TransformTiles(tiles, v, m, part);
        for (int64_t panel = 0; panel < s.panels; ++panel) {
          Multiply(tiles, panel, 0, p_.shape.inner_blocks(), v, m, first > own.begin,
                   u + PanelAt(panel), PanelStride(panel));
        }
      }
    });
    ForEachTask([&](int64_t panel, int64_t first_inner, int64_t inner_blocks) {
      AddGradients(panel, first_inner, inner_blocks);
      Finish(panel, first_inner, Gradient(0) + PanelAt(panel) + first_inner * InnerStride(panel),
             PanelStride(panel));
    });
  }

  // The sums of all threads into the first one's.
  void AddGradients(int64_t panel, int64_t first_inner, int64_t inner_blocks) const {
    for (int64_t f = 0; f < kFrequencies; ++f) {
      const int64_t at = PanelAt(panel) + f * PanelStride(panel) + first_inner * InnerStride(panel);
      float* sum = Gradient(0) + at;
      for (int part = 1; part < p_.split.threads; ++part)
        AddOwned(Gradient(part) + at, inner_blocks * InnerStride(panel), sum);
    }
  }

  // sum += other, which nobody reads again.  Its lines are asked for as if to be written: then they
  // move to this core, where a copy would make their next writer wait for the other core.
  static void AddOwned(const float* other, int64_t count, float* sum) {
    constexpr int64_t kLine = 16, kAhead = 16 * kLine;
    for (int64_t i = 0; i < count; i += kLine) {  // a multiple of a line
      __builtin_prefetch(other + i + kAhead, /*write=*/1);
      for (int64_t j = i; j < i + kLine; ++j) sum[j] += other[j];
    }
  }

  void RunByPanels() const {
    const WinogradSplit& s = p_.split;
    float *v = shared_, *m = v + p_.InputFloats();
    ForEachPart(s.threads, [&](int part) { std::fill_n(BiasSums(part), p_.BiasFloats(), 0.0F); });
    for (int64_t first = 0; first < p_.shape.tiles(); first += s.rows) {
      const TileRun tiles{first, std::min(s.rows, p_.shape.tiles() - first), s.rows};
      ForEachPart(s.threads, [&](int part) {
        const Range own = PartOf(tiles.count, s.threads, part);
        TransformTiles({first + own.begin, own.end - own.begin, s.rows},
                       v + own.begin * kWinogradBlock, m + own.begin * kWinogradBlock, part);
      });
      const bool last = first + tiles.count == p_.shape.tiles();
      ForEachPart(s.threads, [&](int part) { RunTasks(part, tiles, v, m, first > 0, last); });
    }
  }

  void RunTasks(int part, const TileRun& tiles, const float* v, float* m, bool add,
                bool last) const {
    const Range own = PartOf(p_.split.panels * p_.TasksOfPanel(), p_.split.threads, part);
    for (int64_t task = own.begin; task < own.end; ++task) {
      const int64_t panel = task / p_.TasksOfPanel();
      const int64_t first_inner = task % p_.TasksOfPanel() * kTaskInnerBlocks;
      const int64_t blocks = InnerBlocks(first_inner);
      const bool kept = p_.KeepsGradient();
      float* u = kept
                     ? shared_ + p_.TileFloats() + PanelAt(panel) + first_inner * InnerStride(panel)
                     : Gradient(part);
      const int64_t stride = kept ? PanelStride(panel) : WeightStride(blocks, p_.PanelWidth(panel));
      Multiply(tiles, panel, first_inner, blocks, v, m, add, u, stride);
      if (last) Finish(panel, first_inner, u, stride);
    }
  }

  int64_t InnerBlocks(int64_t first_inner) const {
    return std::min(kTaskInnerBlocks, p_.shape.inner_blocks() - first_inner);
  }

  template <typename F>
  void ForEachTask(const F& f) const {
    ForEachPart(p_.split.threads, [&](int part) {
      const Range own = PartOf(p_.split.panels * p_.TasksOfPanel(), p_.split.threads, part);
      for (int64_t task = own.begin; task < own.end; ++task) {
        const int64_t first_inner = task % p_.TasksOfPanel() * kTaskInnerBlocks;
        f(task / p_.TasksOfPanel(), first_inner, InnerBlocks(first_inner));
      }
    });
  }

  void Finish(int64_t panel, int64_t first_inner, const float* u, int64_t u_stride) const {
    const int64_t first = first_inner * kWinogradBlock;
    const int64_t count =
        std::min(InnerBlocks(first_inner) * kWinogradBlock, p_.shape.inner - first);
    WinogradGradWeights(p_.shape, u, u_stride, first, count, p_.split.FirstBlock(panel),
                        p_.PanelWidth(panel), dw_);
  }

  void AddBias(float* dbias) const {
    for (int64_t c = 0; c < p_.shape.outer; ++c) {
      float sum = 0;
      for (int part = 0; part < p_.split.threads; ++part) sum += BiasSums(part)[c];
      dbias[c] = sum;
    }
  }

  const WinogradParams p_;
  // Of the run under way.
  const float *x_ = nullptr, *dy_ = nullptr;
  float *dw_ = nullptr, *shared_ = nullptr, *private_ = nullptr;
};

double EfficiencyOf(const ConvGeometry& g) { return WinogradEfficiency(WinogradForward(g), g); }

const char* Refuse(const CandidateQuery& q) {
  const ConvGeometry g = GradWeightGeometryOf(q.call);
  if (const char* reason = WinogradRefusal(g, q.cpu.instructions.vectors); reason != nullptr)
    return reason;
  return EfficiencyOf(g) <= 1 ? refusal::kNoGain : nullptr;
}

const char* Offer(const CandidateQuery& q, Candidates& candidates) {
  KernelChoice& choice = candidates.Add(EfficiencyOf(GradWeightGeometryOf(q.call)));
  choice.input_layouts = {kBlocked, kBlocked};
  choice.workspace_bytes = WinogradParams(q.call, q.threads()).WorkspaceBytes();
  return nullptr;
}

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice&) {
  return std::unique_ptr<Kernel>(
      std::make_unique<WinogradGradWeight>(WinogradParams(q.call, q.threads())));
}

}  // namespace

KernelDef WinogradGradWeightKernelDef() {
  return {.name = "cpu.winograd_conv_grad_weight",
          .ops = {"conv_grad_weight"},
          .direct_sums = false,
          .dtypes = {DType::kF32},
          .one_dtype = true,
          .refuse = Refuse,
          .in_place = false,
          .offer = Offer,
          .make = Make};
}

}  // namespace ridge::cpu
