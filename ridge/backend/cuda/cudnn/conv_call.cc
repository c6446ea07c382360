// conv and its gradients as cuDNN's convolutions.
#include <numeric>

#include "ridge/backend/cuda/cudnn/cudnn_call.h"
#include "ridge/backend/cuda/layouts.h"
#include "ridge/graph/ops/shared/conv.h"

namespace ridge::cuda {
namespace {

using Of = CudnnOperand::Of;

constexpr int64_t kMostConvBytes = int64_t{256} << 20;
constexpr size_t kBias = 2;

Dims RowMajorStrides(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t d = dims.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * dims[d + 1];
  return strides;
}

// [N, C, ...] as [N, ..., C].
Dims ChannelsLastStrides(const Dims& dims) {
  Dims strides(dims.size(), 1);
  int64_t next = dims[1];
  for (size_t d = dims.size(); d-- > 2; next *= dims[d]) strides[d] = next;
  strides[0] = next;
  return strides;
}

class ConvDescriber {
 public:
  ConvDescriber(const ConvGeometry& g, LayoutId layout, CudnnCall& asked)
      : g_(g), layout_(layout), asked_(asked) {}

  void DescribeWindow() {
    RidgeCudnnQuestion& q = asked_.question;
    const std::span<const WindowAxis> axes = Axes();
    q.axes = static_cast<int32_t>(axes.size());
    for (size_t i = 0; i < axes.size(); ++i) {
      q.stride[i] = axes[i].stride;
      q.dilation[i] = axes[i].dilation;
      q.before[i] = axes[i].pad_begin;
      q.after[i] = axes[i].pad_end;
    }
  }
  void AddX(DType dtype, Of of, size_t index) {
    const Dims dims = Extents(g_.batch, g_.inputs(), &WindowAxis::input);
    Add(RIDGE_CUDNN_X, dtype, dims, of, index);
    if (of != Of::kInput) return;
    // It may be a slice of a batch, which begins behind others of its size.
    asked_.question.tensors[RIDGE_CUDNN_X].alignment =
        static_cast<int32_t>(std::gcd(int64_t{kCudnnAlignment}, TensorType{dtype, dims}.bytes()));
  }
  void AddW(DType dtype, Of of, size_t index) {
    Add(RIDGE_CUDNN_W, dtype, Extents(g_.outputs(), g_.group_inputs, &WindowAxis::kernel), of,
        index);
  }
  void AddY(DType dtype, Of of, size_t index) {
    Add(RIDGE_CUDNN_Y, dtype, Extents(g_.batch, g_.outputs(), &WindowAxis::output), of, index);
  }
  void AddBias(DType dtype, size_t index) {
    Dims dims(2 + Axes().size(), 1);
    dims[1] = g_.outputs();
    Add(RIDGE_CUDNN_BIAS, dtype, dims, Of::kInput, index);
  }

 private:
  // One spatial dimension is two, of which the first has extent 1: cuDNN has more engines for it.
  std::span<const WindowAxis> Axes() const {
    return std::span(g_.window.axes).last(static_cast<size_t>(std::max(g_.window.rank, 2)));
  }
  Dims Extents(int64_t first, int64_t second, int64_t WindowAxis::*extent) const {
    Dims dims = {first, second};
    for (const WindowAxis& axis : Axes()) dims.push_back(axis.*extent);
    return dims;
  }
  void Add(int slot, DType dtype, const Dims& dims, Of of, size_t index) {
    asked_.question.tensors[slot] =
        CudnnTensorOf(*CudnnTypeOf(dtype), dims,
                      layout_ == kChannelsLast ? ChannelsLastStrides(dims) : RowMajorStrides(dims));
    asked_.operands[static_cast<size_t>(slot)] = {of, index, 0};
  }

  const ConvGeometry& g_;
  const LayoutId layout_;
  CudnnCall& asked_;
};

const char* CheckTypes(const OpCall& call) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.has_input(i) && !CudnnTypeOf(call.inputs[i].dtype)) return refusal::kCudnnDType;
  }
  // Sums of 16-bit products are rounded to the type of the operands.
  if (call.outputs[0].dtype != call.inputs[0].dtype) return refusal::kCudnnDType;
  return AnyEmpty(call) ? refusal::kCudnnEmpty : nullptr;
}

const char* DescribeForward(const OpCall& call, LayoutId layout, CudnnCall& asked) {
  const std::string& epilogue = call.text("epilogue");
  if (!epilogue.empty() && epilogue != "relu") return refusal::kCudnnEpilogue;
  const DType dtype = call.inputs[0].dtype;
  const ConvGeometry g = ConvGeometryOf(call);
  ConvDescriber describer(g, layout, asked);
  describer.DescribeWindow();
  describer.AddX(dtype, Of::kInput, 0);
  describer.AddW(dtype, Of::kInput, 1);
  describer.AddY(dtype, Of::kOutput, 0);
  if (call.has_input(kBias)) describer.AddBias(call.inputs[kBias].dtype, kBias);
  asked.question.op = RIDGE_CUDNN_CONV;
  asked.question.relu = epilogue.empty() ? 0 : 1;
  return nullptr;
}

const char* DescribeGradInput(const OpCall& call, LayoutId layout, CudnnCall& asked) {
  const DType dtype = call.inputs[0].dtype;
  const ConvGeometry g = GradInputGeometryOf(call);
  ConvDescriber describer(g, layout, asked);
  describer.DescribeWindow();
  describer.AddY(dtype, Of::kInput, 0);
  describer.AddW(dtype, Of::kInput, 1);
  describer.AddX(dtype, Of::kOutput, 0);
  asked.question.op = RIDGE_CUDNN_CONV_GRAD_INPUT;
  return nullptr;
}

const char* DescribeGradWeight(const OpCall& call, LayoutId layout, CudnnCall& asked) {
  if (call.integer("bias") != 0) return refusal::kCudnnBias;
  const DType dtype = call.inputs[0].dtype;
  const ConvGeometry g = GradWeightGeometryOf(call);
  ConvDescriber describer(g, layout, asked);
  describer.DescribeWindow();
  describer.AddX(dtype, Of::kInput, 0);
  describer.AddY(dtype, Of::kInput, 1);
  describer.AddW(dtype, Of::kOutput, 0);
  asked.question.op = RIDGE_CUDNN_CONV_GRAD_WEIGHT;
  return nullptr;
}

}  // namespace

bool IsConv(const OpDef& op) {
  return op.name == "conv" || op.name == "conv_grad_input" || op.name == "conv_grad_weight";
}

const char* DescribeConv(const OpDef& op, const OpCall& call, LayoutId layout, CudnnCall& asked) {
  if (const char* const reason = CheckTypes(call); reason != nullptr) return reason;
  asked.question.most_workspace = kMostConvBytes;
  if (op.name == "conv") return DescribeForward(call, layout, asked);
  if (op.name == "conv_grad_input") return DescribeGradInput(call, layout, asked);
  return DescribeGradWeight(call, layout, asked);
}

}  // namespace ridge::cuda
