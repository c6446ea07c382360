// conv and conv_grad_input by Winograd's F(4x4, 3x3): 2.25 multiplications an output instead of 9.
//
// The gradient of the input is the same convolution of dy with flipped weights, channels swapped.
// Weights come row-major and are transformed in each run; everything transformed lives in the
// workspace.  See docs/design/0005-winograd.md.
#include "oneapi/dnnl/dnnl.hpp"
#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/epilogue.h"
#include "ridge/backend/cpu/kernels/winograd.h"
#include "ridge/backend/cpu/parallel.h"

namespace ridge::cpu {
namespace {

constexpr auto kBlocked = static_cast<LayoutId>(dnnl_aBcd16b);
constexpr size_t kBias = 2, kFirstExtra = 3;

struct StepName {
  const char* name;
  WinogradStep step;
};
constexpr StepName kSteps[] = {{"relu", WinogradStep::kRelu}, {"add", WinogradStep::kAdd},
                               {"gelu", WinogradStep::kGelu}, {"silu", WinogradStep::kSilu},
                               {"tanh", WinogradStep::kTanh}, {"sigmoid", WinogradStep::kSigmoid}};

// nullopt when a step is unknown here, or would make something of the zeros behind the last
// channel.
std::optional<std::vector<WinogradStep>> EpilogueOf(const OpCall& call, bool padded) {
  std::vector<WinogradStep> steps;
  for (const std::string& name : EpilogueSteps(call)) {
    const auto* known = std::find_if(std::begin(kSteps), std::end(kSteps),
                                     [&](const StepName& step) { return step.name == name; });
    if (known == std::end(kSteps)) return std::nullopt;
    if (padded && known->step == WinogradStep::kSigmoid) return std::nullopt;
    steps.push_back(known->step);
  }
  return steps;
}

// A convolution and where its tensors are among the call's.
struct WinogradParams {
  WinogradShape shape;
  WinogradWeights weights;
  WinogradSplit split;
  size_t bias = 0, first_extra = 0;  // 0: none
  WinogradEpilogue epilogue;

  int64_t PanelWidth(int64_t panel) const {
    return std::min(split.panel_blocks, shape.outer_blocks() - split.FirstBlock(panel));
  }
  // Of the transformed weights of a panel, or as much of them as is kept at once.
  int64_t PanelFloats() const {
    return kFrequencies * WeightStride(split.inner_blocks, split.panel_blocks);
  }
  int64_t InputFloats() const {
    return kFrequencies * FrequencyStride(shape.inner_blocks(), split.rows);
  }
  int64_t OutputFloats() const {
    return kFrequencies * FrequencyStride(split.panel_blocks, split.rows);
  }
  int64_t BiasFloats() const { return shape.outer_blocks() * kWinogradBlock; }

  // Bias; then all weights and each thread's tiles, or the shared tiles and each thread's weights.
  int64_t SharedFloats() const {
    if (split.own_weights) return BiasFloats();
    return BiasFloats() + (split.by_tiles ? split.panels * PanelFloats() : InputFloats());
  }
  int64_t PrivateFloats() const {
    const int64_t weights = split.own_weights ? split.panels * PanelFloats() : 0;
    return OutputFloats() + (split.by_tiles ? InputFloats() + weights : PanelFloats());
  }
  int64_t WorkspaceBytes() const { return 4 * (SharedFloats() + split.threads * PrivateFloats()); }
};

class WinogradConv : public HostKernel<WinogradConv> {
 public:
  explicit WinogradConv(WinogradParams params) : p_(std::move(params)) {
    for (const WinogradStep step : p_.epilogue.steps) {
      if (step == WinogradStep::kAdd) p_.epilogue.extras.push_back(nullptr);
    }
  }

  Status Run(const KernelBuffers& b) {
    x_ = static_cast<const float*>(b.inputs[0]);
    w_ = static_cast<const float*>(b.inputs[1]);
    y_ = static_cast<float*>(b.outputs[0]);
    bias_ = static_cast<float*>(b.workspace);
    shared_ = bias_ + p_.BiasFloats();
    private_ = bias_ + p_.SharedFloats();
    SetEpilogue(b);
    if (p_.split.by_tiles) {
      RunByTiles();
    } else {
      RunByPanels();
    }
    return Status();
  }

 private:
  void SetEpilogue(const KernelBuffers& b) {
    std::fill_n(bias_, p_.BiasFloats(), 0.0F);
    if (p_.bias != 0) {
      const auto* bias = static_cast<const float*>(b.inputs[p_.bias]);
      std::copy(bias, bias + p_.shape.outer, bias_);
    }
    p_.epilogue.bias = bias_;
    for (size_t i = 0; i < p_.epilogue.extras.size(); ++i)
      p_.epilogue.extras[i] = static_cast<const float*>(b.inputs[p_.first_extra + i]);
  }

  float* Private(int part) const { return private_ + part * p_.PrivateFloats(); }

  void TransformWeights(int64_t panel, int64_t first_inner, int64_t inner, float* u) const {
    const BlockRange range{.first_inner = first_inner,
                           .inner = inner,
                           .first_outer = p_.split.FirstBlock(panel),
                           .outer = p_.PanelWidth(panel)};
    WinogradTransformWeights(p_.shape, p_.weights, w_, range, u);
  }

  // m (+)= the products of the transformed tiles with inner blocks from `first_inner` on.
  void Multiply(const TileRun& tiles, int64_t panel, int64_t first_inner, int64_t inner,
                const float* v, const float* u, float* m) const {
    const Product product{.v_stride = FrequencyStride(p_.shape.inner_blocks(), tiles.rows),
                          .inner_blocks = inner,
                          .blocks = p_.PanelWidth(panel),
                          .rows = tiles.rows,
                          .add = first_inner > 0};
    WinogradProduct(product, v + first_inner * tiles.rows * kWinogradBlock, u, m);
  }

  void Output(const TileRun& tiles, int64_t panel, const float* m) const {
    WinogradOutput(p_.shape, m, tiles, p_.split.FirstBlock(panel), p_.PanelWidth(panel),
                   p_.epilogue, y_);
  }

  // With `own_weights` each thread transforms them all, into its own memory.
  void RunByTiles() const {
    const WinogradSplit& s = p_.split;
    if (!s.own_weights) {
      ForEachPart(s.threads, [&](int part) {
        for (int64_t panel = part; panel < s.panels; panel += s.threads)
          TransformWeights(panel, 0, s.inner_blocks, shared_ + panel * p_.PanelFloats());
      });
    }
    ForEachPart(s.threads, [&](int part) {
      const Range own = PartOf(p_.shape.tiles(), s.threads, part);
      if (own.begin == own.end) return;
      float *v = Private(part), *m = v + p_.InputFloats();
      float* u = s.own_weights ? m + p_.OutputFloats() : shared_;
      if (s.own_weights) {
        for (int64_t panel = 0; panel < s.panels; ++panel)
          TransformWeights(panel, 0, s.inner_blocks, u + panel * p_.PanelFloats());
      }
      for (int64_t first = own.begin; first < own.end; first += s.rows)
        RunTiles({first, std::min(s.rows, own.end - first), s.rows}, u, v, m);
    });
  }

  void RunTiles(const TileRun& tiles, const float* u, float* v, float* m) const {
    WinogradInput(p_.shape, x_, tiles, v);
    for (int64_t panel = 0; panel < p_.split.panels; ++panel) {
      Multiply(tiles, panel, 0, p_.split.inner_blocks, v, u + panel * p_.PanelFloats(), m);
      Output(tiles, panel, m);
    }
  }

  void RunByPanels() const {
    const WinogradSplit& s = p_.split;
    for (int64_t first = 0; first < p_.shape.tiles(); first += s.rows) {
      const TileRun tiles{first, std::min(s.rows, p_.shape.tiles() - first), s.rows};
      ForEachPart(s.threads, [&](int part) {
        const Range own = PartOf(tiles.count, s.threads, part);
        WinogradInput(p_.shape, x_, {first + own.begin, own.end - own.begin, s.rows},
                      shared_ + own.begin * kWinogradBlock);
      });
      ForEachPart(s.threads, [&](int part) {
        float *u = Private(part), *m = u + p_.PanelFloats();
        for (int64_t panel = part; panel < s.panels; panel += s.threads) {
          for (int64_t k = 0; k < p_.shape.inner_blocks(); k += s.inner_blocks) {
            const int64_t inner = std::min(s.inner_blocks, p_.shape.inner_blocks() - k);
            TransformWeights(panel, k, inner, u);
            Multiply(tiles, panel, k, inner, shared_, u, m);
          }
          Output(tiles, panel, m);
        }
      });
    }
  }

  WinogradParams p_;
  // Of the run under way.
  const float *x_ = nullptr, *w_ = nullptr;
  float *y_ = nullptr, *bias_ = nullptr, *shared_ = nullptr, *private_ = nullptr;
};

WinogradParams ConvParams(const OpCall& call, int threads) {
  const ConvGeometry g = ConvGeometryOf(call);
  WinogradParams p;
  p.shape = WinogradForward(g);
  p.weights = {.outer_stride = g.inputs() * kWinogradWeightTaps,
               .inner_stride = kWinogradWeightTaps};
  p.split = SplitWinograd(p.shape, threads);
  p.bias = call.has_input(kBias) ? kBias : 0;
  p.first_extra = kFirstExtra;
  p.epilogue.steps = EpilogueOf(call, /*padded=*/false).value();
  return p;
}

WinogradParams GradInputParams(const OpCall& call, int threads) {
  const ConvGeometry g = GradInputGeometryOf(call);
  WinogradParams p;
  p.shape = WinogradGradInput(g);
  p.weights = {.outer_stride = kWinogradWeightTaps,
               .inner_stride = g.inputs() * kWinogradWeightTaps,
               .flipped = true};
  p.split = SplitWinograd(p.shape, threads);
  return p;
}

WinogradParams ParamsOf(const CandidateQuery& q) {
  return q.op.name == "conv" ? ConvParams(q.call, q.threads())
                             : GradInputParams(q.call, q.threads());
}

const char* RefuseConv(const CandidateQuery& q) {
  const ConvGeometry g = ConvGeometryOf(q.call);
  if (const char* reason = WinogradRefusal(g, q.cpu.instructions.vectors); reason != nullptr)
    return reason;
  if (!EpilogueOf(q.call, g.outputs() % kWinogradBlock != 0)) return refusal::kEpilogue;
  return WinogradEfficiency(WinogradForward(g), g) <= 1 ? refusal::kNoGain : nullptr;
}

const char* RefuseGradInput(const CandidateQuery& q) {
  const ConvGeometry g = GradInputGeometryOf(q.call);
  if (const char* reason = WinogradRefusal(g, q.cpu.instructions.vectors); reason != nullptr)
    return reason;
  return WinogradEfficiency(WinogradGradInput(g), g) <= 1 ? refusal::kNoGain : nullptr;
}

const char* Offer(const CandidateQuery& q, Candidates& candidates) {
  const ConvGeometry g = q.op.name == "conv" ? ConvGeometryOf(q.call) : GradInputGeometryOf(q.call);
  const WinogradParams p = ParamsOf(q);
  KernelChoice& choice = candidates.Add(WinogradEfficiency(p.shape, g));
  choice.input_layouts[0] = kBlocked;
  for (size_t i = p.first_extra; p.first_extra > 0 && i < q.call.inputs.size(); ++i)
    choice.input_layouts[i] = kBlocked;
  choice.output_layouts[0] = kBlocked;
  choice.workspace_bytes = p.WorkspaceBytes();
  return nullptr;
}

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice&) {
  return std::unique_ptr<Kernel>(std::make_unique<WinogradConv>(ParamsOf(q)));
}

KernelDef DefOf(const char* op, const char* (*refuse)(const CandidateQuery&)) {
  return {.name = "cpu.winograd_{op}",
          .ops = {op},
          .direct_sums = false,
          .dtypes = {DType::kF32},
          .one_dtype = true,
          .refuse = refuse,
          .in_place = false,
          .offer = Offer,
          .make = Make};
}

}  // namespace

KernelDef WinogradConvKernelDef() { return DefOf("conv", RefuseConv); }
KernelDef WinogradGradInputKernelDef() { return DefOf("conv_grad_input", RefuseGradInput); }

}  // namespace ridge::cpu
