// A norm in training, with sums and weights of f32:
//   layer_norm_grad bf16 8192x768      rows, and their width
//   batch_norm bf16 256x64x56x56
#pragma once
#include "question.h"

namespace cudnn_ask {

inline void AddLayerNormGrad(Graph& graph, const Extents& dims) {
  const Extents x = {dims[0], dims[1], 1, 1}, of_row = {dims[0], 1, 1, 1},
                of_width = {1, dims[1], 1, 1};
  const auto attributes =
      fe::graph::Layernorm_backward_attributes().set_saved_mean_and_inv_variance(
          FloatInput(graph, "mean", of_row), FloatInput(graph, "inverse", of_row));
  const auto [dx, dscale, dbias] =
      graph.layernorm_backward(Input(graph, "dy", x), Input(graph, "x", x),
                               FloatInput(graph, "scale", of_width), attributes);
  dx->set_output(true);
  SetOutput(dscale, DataType_t::FLOAT, of_width);
  SetOutput(dbias, DataType_t::FLOAT, of_width);
}

inline void AddBatchNorm(Graph& graph, const Extents& dims) {
  const Extents of_channel = {1, dims[1], 1, 1};
  Tensor mean = FloatInput(graph, "mean", of_channel);
  Tensor variance = FloatInput(graph, "variance", of_channel);
  Tensor momentum = graph.tensor(0.1F), epsilon = graph.tensor(1e-5F);
  const auto attributes =
      fe::graph::Batchnorm_attributes().set_epsilon(epsilon).set_previous_running_stats(
          mean, variance, momentum);
  // y, then statistics: two of this batch, two that run.
  const auto outputs =
      graph.batchnorm(Input(graph, "x", dims), FloatInput(graph, "scale", of_channel),
                      FloatInput(graph, "bias", of_channel), attributes);
  outputs[0]->set_output(true);
  for (size_t i = 1; i < outputs.size(); ++i) SetOutput(outputs[i], DataType_t::FLOAT, of_channel);
}

inline Question ReadNorm(const std::string& line) {
  std::istringstream in(line);
  std::string op, type, extents;
  in >> op >> type >> extents;
  const Extents dims = ReadExtents(extents, line);
  const bool is_batch_norm = op == "batch_norm";
  if (dims.size() != (is_batch_norm ? 4 : 2)) Fail("extents disagree: " + line);
  return {ReadType(type, line), /*exact=*/false, [=](Graph& graph, bool) {
            is_batch_norm ? AddBatchNorm(graph, dims) : AddLayerNormGrad(graph, dims);
          }};
}

}  // namespace cudnn_ask
