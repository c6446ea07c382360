#include "ridge/backend/cpu/kernel_list.h"

#include "ridge/backend/cpu/kernels/kernels.h"
#include "ridge/backend/cpu/layouts.h"
#include "ridge/backend/reference/reference_backend.h"

namespace ridge::cpu {
namespace {

// For one operator: best first.
constexpr KernelFactory kKernels[] = {
    {"matmul", "cpu.narrow_matmul", OfferNarrowMatmul, CreateNarrowMatmul},
    {"matmul", "onednn.matmul", OfferMatmul, CreateMatmul},
    {"matmul", "cpu.matmul_f32", OfferMatmulF32, CreateMatmulF32},
    {"matmul", "cpu.matmul_f64", OfferMatmulF64, CreateMatmulF64},
    {"conv", "cpu.winograd_conv", OfferWinogradConv, CreateWinogradConv},
    {"conv_grad_input", "cpu.winograd_conv_grad_input", OfferWinogradGradInput,
     CreateWinogradGradInput},
    {"conv_grad_weight", "cpu.winograd_conv_grad_weight", OfferWinogradGradWeight,
     CreateWinogradGradWeight},
    {"conv", "onednn.conv", OfferConv, CreateConv},
    {"conv_grad_input", "onednn.conv_grad_input", OfferConvGradInput, CreateConvGradInput},
    {"conv_grad_weight", "cpu.depthwise_grad_weight", OfferDepthwiseGradWeight,
     CreateDepthwiseGradWeight},
    {"conv_grad_weight", "onednn.conv_grad_weight", OfferConvGradWeight, CreateConvGradWeight},
    {"conv", "cpu.conv_f64", OfferConvF64, CreateConvF64},
    {"conv_grad_input", "cpu.conv_grad_input_f64", OfferConvF64, CreateConvF64},
    {"conv_grad_weight", "cpu.conv_grad_weight_f64", OfferConvF64, CreateConvF64},
    {"max_pool", "cpu.max_pool", OfferPool, CreateMaxPool},
    {"max_pool_grad", "cpu.max_pool_grad", OfferPool, CreateMaxPoolGrad},
    {"avg_pool", "cpu.avg_pool", OfferPool, CreateAvgPool},
    {"avg_pool_grad", "cpu.avg_pool_grad", OfferPool, CreateAvgPoolGrad},
    {"conv_pool", "cpu.conv_pool", OfferConvPool, CreateConvPool},
    {"conv_pool_grad_weight", "cpu.conv_pool_grad_weight", OfferConvPoolGradWeight,
     CreateConvPoolGradWeight},
    {"softmax_cross_entropy", "cpu.softmax_cross_entropy", OfferCrossEntropy, CreateCrossEntropy},
    {"softmax_cross_entropy_grad", "cpu.softmax_cross_entropy_grad", OfferCrossEntropy,
     CreateCrossEntropyGrad},
    {"reduce_sum", "cpu.reduce", OfferReduce, CreateReduce},
    {"reduce_mean", "cpu.reduce", OfferReduce, CreateReduce},
    {"reduce_max", "cpu.reduce", OfferReduce, CreateReduce},
    {"reduce_min", "cpu.reduce", OfferReduce, CreateReduce},
    {"sgd_update", "cpu.sgd_update", OfferOptimizer, CreateSgdUpdate},
    {"adam_update", "cpu.adam_update", OfferOptimizer, CreateAdamUpdate},
    {"batch_norm", "cpu.batch_norm", OfferChannelNorm, CreateChannelNorm},
    {"batch_norm_grad", "cpu.batch_norm", OfferChannelNorm, CreateChannelNorm},
    {"batch_norm_inference", "cpu.batch_norm", OfferChannelNorm, CreateChannelNorm},
    {"batch_norm", "onednn.batch_norm", OfferBatchNorm, CreateBatchNorm},
    {"batch_norm_grad", "onednn.batch_norm", OfferBatchNorm, CreateBatchNorm},
    {"batch_norm_inference", "onednn.batch_norm", OfferBatchNorm, CreateBatchNorm},
    {"layer_norm", "cpu.layer_norm", OfferLayerNorm, CreateLayerNorm},
    {"layer_norm_grad", "cpu.layer_norm_grad", OfferLayerNorm, CreateLayerNormGrad},
    {"rms_norm", "cpu.rms_norm", OfferRmsNorm, CreateRmsNorm},
    {"rms_norm_grad", "cpu.rms_norm_grad", OfferRmsNorm, CreateRmsNormGrad},
    {"attention", "cpu.attention", OfferAttention, CreateAttention},
    {"attention_grad", "cpu.attention_grad", OfferAttention, CreateAttentionGrad},
    {"attention", "cpu.attention_bf16", OfferAttentionBF16, CreateAttentionBF16},
    {"attention_grad", "cpu.attention_grad_bf16", OfferAttentionBF16, CreateAttentionBF16},
    {"lstm", "cpu.lstm", OfferRecurrent, CreateRecurrent},
    {"lstm_grad", "cpu.lstm_grad", OfferRecurrent, CreateRecurrent},
    {"gru", "cpu.gru", OfferRecurrent, CreateRecurrent},
    {"gru_grad", "cpu.gru_grad", OfferRecurrent, CreateRecurrent},
    {"rnn", "cpu.rnn", OfferRecurrent, CreateRecurrent},
    {"rnn_grad", "cpu.rnn_grad", OfferRecurrent, CreateRecurrent},
    {"softmax", "onednn.softmax", OfferSoftmax, CreateSoftmax},
    {"log_softmax", "onednn.softmax", OfferSoftmax, CreateSoftmax},
    {"transpose", "cpu.move", OfferMove, CreateMove},
    {"slice", "cpu.move", OfferMove, CreateMove},
    {"slice_grad", "cpu.move", OfferMove, CreateMove},
    {"concat", "cpu.move", OfferMove, CreateMove},
    {"pad", "cpu.move", OfferMove, CreateMove},
    {"expand", "cpu.move", OfferMove, CreateMove},
    {"reshape", "cpu.move", OfferMove, CreateMove},
    {"argmax", "cpu.argmax", OfferArgmax, CreateArgmax},
    {"gather", "cpu.gather", OfferGather, CreateGather},
    {"scatter_add", "cpu.scatter_add", OfferScatterAdd, CreateScatterAdd},
    {"scatter", "cpu.scatter", OfferScatter, CreateScatter},
    {"element_index", "cpu.places", OfferPlaces, CreateElementIndex},
    {"ravel_index", "cpu.places", OfferPlaces, CreateRavelIndex},
    {"top_k", "cpu.top_k", OfferTopK, CreateTopK},
    {"cumsum", "cpu.scan", OfferScan, CreateScan},
    {"cumprod", "cpu.scan", OfferScan, CreateScan},
    {"cumprod_grad", "cpu.scan", OfferScan, CreateCumprodGrad},
    {"interpolate", "cpu.interpolate", OfferInterpolate, CreateInterpolate},
    {"dropout", "cpu.dropout", OfferDropout, CreateDropout},
    {"*", "cpu.pointwise", OfferPointwise, CreatePointwise},
};

constexpr int64_t kTinyFlops = 100'000;
constexpr int64_t kTinyBytes = 32 * 1024;

}  // namespace

std::span<const KernelFactory> KernelList() { return kKernels; }

int ThreadsFor(const CpuContext& cpu, const OpDef& op, const OpCall& call) {
  const Cost cost = CallCost(op, call);
  const bool tiny = cost.flops < kTinyFlops && cost.bytes_read + cost.bytes_written < kTinyBytes;
  return tiny ? 1 : cpu.threads;
}

KernelChoice MakeChoice(const Question& q, const std::string& kernel, double efficiency) {
  KernelChoice choice;
  choice.kernel = kernel;
  choice.input_layouts.assign(q.call.inputs.size(), kRowMajor);
  choice.output_layouts.assign(q.call.outputs.size(), kRowMajor);
  choice.efficiency = efficiency;
  for (const auto& [output, input] : q.op.in_place) {
    const auto out = static_cast<size_t>(output), in = static_cast<size_t>(input);
    if (out < q.call.outputs.size() && q.call.has_input(in) &&
        q.call.inputs[in] == q.call.outputs[out]) {
      choice.in_place.emplace_back(output, input);
    }
  }
  return choice;
}

void SetKey(const Question& q, KernelChoice& choice) {
  choice.key = choice.kernel + " " + CallKey(q.op, q.call) + " layouts=";
  const auto append = [&](const std::vector<LayoutId>& layouts) {
    for (size_t i = 0; i < layouts.size(); ++i)
      choice.key += (i == 0 ? "" : ",") + LayoutNameOf(layouts[i]);
  };
  append(choice.input_layouts);
  choice.key += "->";
  append(choice.output_layouts);
  choice.key += " threads=" + std::to_string(ThreadsFor(q.cpu, q.op, q.call));
}

bool AllOf(const OpCall& call, DType dtype) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.has_input(i) && call.inputs[i].dtype != dtype) return false;
  }
  for (const TensorType& type : call.outputs) {
    if (type.dtype != dtype) return false;
  }
  return true;
}

bool AnyEmpty(const OpCall& call) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.has_input(i) && call.inputs[i].elements() == 0) return true;
  }
  for (const TensorType& type : call.outputs) {
    if (type.elements() == 0) return true;
  }
  return false;
}

}  // namespace ridge::cpu
