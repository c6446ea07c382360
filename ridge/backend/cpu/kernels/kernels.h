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

RIDGE_OFFER(OfferConv2d);  // conv2d.cc
RIDGE_CREATE(CreateConv2d);
RIDGE_OFFER(OfferConv2dGradInput);
RIDGE_CREATE(CreateConv2dGradInput);
RIDGE_OFFER(OfferConv2dGradWeight);
RIDGE_CREATE(CreateConv2dGradWeight);

RIDGE_OFFER(OfferPool);  // pool.cc: all pools and their gradients
RIDGE_CREATE(CreateMaxPool);
RIDGE_CREATE(CreateMaxPoolGrad);
RIDGE_CREATE(CreateAvgPool);
RIDGE_CREATE(CreateAvgPoolGrad);

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

}  // namespace ridge::cpu
