// The offers and creators of every kernel family, for the table in kernel_list.cc.
#pragma once
#include "ridge/backend/cpu/kernel_list.h"

namespace ridge::cpu {

#define RIDGE_OFFER(name) const char* name(const Question& q, std::vector<KernelChoice>& choices)
#define RIDGE_CREATE(name)                                                                         \
  Result<std::unique_ptr<Kernel>> name(const CpuContext& cpu, const OpDef& op, const OpCall& call, \
                                       const KernelChoice& choice)

RIDGE_OFFER(OfferMatmul);  // matmul.cc
RIDGE_CREATE(CreateMatmul);

RIDGE_OFFER(OfferNarrowMatmul);  // narrow_matmul.cc
RIDGE_CREATE(CreateNarrowMatmul);

RIDGE_OFFER(OfferMatmulF32);  // matmul_f32.cc
RIDGE_CREATE(CreateMatmulF32);

RIDGE_OFFER(OfferMatmulF64);  // matmul_f64.cc
RIDGE_CREATE(CreateMatmulF64);

RIDGE_OFFER(OfferConv);  // conv.cc
RIDGE_CREATE(CreateConv);
RIDGE_OFFER(OfferConvGradInput);
RIDGE_CREATE(CreateConvGradInput);
RIDGE_OFFER(OfferConvGradWeight);
RIDGE_CREATE(CreateConvGradWeight);

RIDGE_OFFER(OfferDepthwiseGradWeight);  // depthwise.cc
RIDGE_CREATE(CreateDepthwiseGradWeight);

RIDGE_OFFER(OfferWinogradConv);  // winograd_conv.cc
RIDGE_CREATE(CreateWinogradConv);
RIDGE_OFFER(OfferWinogradGradInput);
RIDGE_CREATE(CreateWinogradGradInput);
RIDGE_OFFER(OfferWinogradGradWeight);  // winograd_grad_weight.cc
RIDGE_CREATE(CreateWinogradGradWeight);

RIDGE_OFFER(OfferConvF64);  // conv_f64.cc: conv and its gradients
RIDGE_CREATE(CreateConvF64);

RIDGE_OFFER(OfferPool);  // pool.cc: all pools and their gradients
RIDGE_CREATE(CreateMaxPool);
RIDGE_CREATE(CreateMaxPoolGrad);
RIDGE_CREATE(CreateAvgPool);
RIDGE_CREATE(CreateAvgPoolGrad);

RIDGE_OFFER(OfferConvPool);  // thin_conv.cc
RIDGE_CREATE(CreateConvPool);
RIDGE_OFFER(OfferConvPoolGradWeight);
RIDGE_CREATE(CreateConvPoolGradWeight);

RIDGE_OFFER(OfferCrossEntropy);  // cross_entropy.cc
RIDGE_CREATE(CreateCrossEntropy);
RIDGE_CREATE(CreateCrossEntropyGrad);

RIDGE_OFFER(OfferReduce);  // reduce.cc
RIDGE_CREATE(CreateReduce);

RIDGE_OFFER(OfferOptimizer);  // optimizer.cc
RIDGE_CREATE(CreateSgdUpdate);
RIDGE_CREATE(CreateAdamUpdate);

RIDGE_OFFER(OfferPointwise);  // pointwise.cc
RIDGE_CREATE(CreatePointwise);

RIDGE_OFFER(OfferChannelNorm);  // channel_norm.cc: batch_norm, its gradient, its inference form
RIDGE_CREATE(CreateChannelNorm);

RIDGE_OFFER(OfferBatchNorm);  // batch_norm.cc: training, gradient, inference
RIDGE_CREATE(CreateBatchNorm);

RIDGE_OFFER(OfferLayerNorm);  // layer_norm.cc
RIDGE_CREATE(CreateLayerNorm);
RIDGE_CREATE(CreateLayerNormGrad);

RIDGE_OFFER(OfferRmsNorm);  // rms_norm.cc
RIDGE_CREATE(CreateRmsNorm);
RIDGE_CREATE(CreateRmsNormGrad);

RIDGE_OFFER(OfferAttention);  // attention.cc
RIDGE_CREATE(CreateAttention);
RIDGE_CREATE(CreateAttentionGrad);

RIDGE_OFFER(OfferAttentionBF16);  // attention_bf16.cc: attention and its gradient
RIDGE_CREATE(CreateAttentionBF16);

RIDGE_OFFER(OfferRecurrent);  // recurrent.cc: lstm, gru, rnn and their gradients
RIDGE_CREATE(CreateRecurrent);

RIDGE_OFFER(OfferSoftmax);  // softmax.cc
RIDGE_CREATE(CreateSoftmax);

RIDGE_OFFER(OfferMove);  // move.cc: transpose, slice, slice_grad, concat, pad, expand, reshape
RIDGE_CREATE(CreateMove);

RIDGE_OFFER(OfferArgmax);  // argmax.cc
RIDGE_CREATE(CreateArgmax);
RIDGE_OFFER(OfferGather);  // index.cc
RIDGE_CREATE(CreateGather);
RIDGE_OFFER(OfferScatterAdd);
RIDGE_CREATE(CreateScatterAdd);
RIDGE_OFFER(OfferScatter);  // scatter.cc
RIDGE_CREATE(CreateScatter);
RIDGE_OFFER(OfferPlaces);  // places.cc: element_index, ravel_index
RIDGE_CREATE(CreateElementIndex);
RIDGE_CREATE(CreateRavelIndex);
RIDGE_OFFER(OfferTopK);  // top_k.cc
RIDGE_CREATE(CreateTopK);
RIDGE_OFFER(OfferScan);  // scan.cc: cumsum, cumprod and its gradient
RIDGE_CREATE(CreateScan);
RIDGE_CREATE(CreateCumprodGrad);

RIDGE_OFFER(OfferInterpolate);  // interpolate.cc
RIDGE_CREATE(CreateInterpolate);

RIDGE_OFFER(OfferDropout);  // dropout.cc
RIDGE_CREATE(CreateDropout);

#undef RIDGE_OFFER
#undef RIDGE_CREATE

}  // namespace ridge::cpu
