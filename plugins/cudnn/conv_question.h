// A convolution, or a gradient of one, as ConvQuestion (ridge/plan/hardware/conv_workspaces.h)
// writes it:
//   conv bf16 bf16 256x3x224x224 64x3x7x7 stride 2x2 padding 3x3x3x3 dilation 1x1
// the types of the operands and of the result, then x and w of y = conv(x, w).  conv may end with
// "with bias", "with relu", "with bias,relu" or "with sums": of each channel, and of its squares.
#pragma once
#include "question.h"

namespace cudnn_ask {

struct Convolution {
  std::string op;  // conv, conv_grad_input, conv_grad_weight
  DataType_t out = DataType_t::FLOAT;
  bool bias = false, relu = false, sums = false;
  Extents x, w, stride, padding, dilation;  // padding: before each dimension, then after each
};

inline void ReadSteps(const std::string& text, const std::string& line, Convolution& c) {
  if (text != "bias" && text != "relu" && text != "bias,relu" && text != "sums")
    Fail("'" + text + "' is no list of steps: " + line);
  c.bias = text.starts_with("bias");
  c.relu = text.ends_with("relu");
  c.sums = text == "sums";
}

inline Extents OutputExtents(const Convolution& c) {
  Extents y = {c.x[0], c.w[0]};
  const size_t axes = c.stride.size();
  for (size_t i = 0; i < axes; ++i) {
    const int64_t covered = c.dilation[i] * (c.w[i + 2] - 1) + 1;
    y.push_back((c.x[i + 2] + c.padding[i] + c.padding[axes + i] - covered) / c.stride[i] + 1);
  }
  return y;
}

template <typename Attributes>
Attributes AttributesOf(const Convolution& c) {
  const auto middle = c.padding.begin() + static_cast<std::ptrdiff_t>(c.stride.size());
  return Attributes()
      .set_pre_padding(Extents(c.padding.begin(), middle))
      .set_post_padding(Extents(middle, c.padding.end()))
      .set_stride(c.stride)
      .set_dilation(c.dilation);
}

// Of one number a channel of the result.
inline Extents ChannelExtents(const Convolution& c) {
  Extents dims(c.x.size(), 1);
  dims[1] = c.w[0];
  return dims;
}

// What stands between two nodes is f32.
inline Tensor AddSteps(Graph& graph, const Convolution& c, Tensor y) {
  const auto pointwise = [](fe::PointwiseMode_t mode) {
    return fe::graph::Pointwise_attributes().set_mode(mode);
  };
  if (c.bias) {
    y->set_data_type(DataType_t::FLOAT);
    y = graph.pointwise(y, Input(graph, "bias", ChannelExtents(c)),
                        pointwise(fe::PointwiseMode_t::ADD));
  }
  if (c.relu) {
    y->set_data_type(DataType_t::FLOAT);
    y = graph.pointwise(y, pointwise(fe::PointwiseMode_t::RELU_FWD));
  }
  return y;
}

inline void AddSums(Graph& graph, const Convolution& c, const Tensor& y) {
  for (const Tensor& sum : graph.genstats(y, fe::graph::Genstats_attributes()))
    SetOutput(sum, DataType_t::FLOAT, ChannelExtents(c));
}

inline void AddConvolution(Graph& graph, const Convolution& c) {
  const Extents y = OutputExtents(c);
  if (c.op == "conv") {
    const Tensor plain = graph.conv_fprop(Input(graph, "x", c.x), Input(graph, "w", c.w),
                                          AttributesOf<fe::graph::Conv_fprop_attributes>(c));
    SetOutput(AddSteps(graph, c, plain), c.out, y);
    if (c.sums) AddSums(graph, c, plain);
  } else if (c.op == "conv_grad_input") {
    SetOutput(graph.conv_dgrad(Input(graph, "dy", y), Input(graph, "w", c.w),
                               AttributesOf<fe::graph::Conv_dgrad_attributes>(c)),
              c.out, c.x);
  } else {
    SetOutput(graph.conv_wgrad(Input(graph, "dy", y), Input(graph, "x", c.x),
                               AttributesOf<fe::graph::Conv_wgrad_attributes>(c)),
              c.out, c.w);
  }
}

inline Question ReadConvolution(const std::string& line) {
  std::istringstream in(line);
  Convolution c;
  std::string type, out, x, w, key, value;
  in >> c.op >> type >> out >> x >> w;
  c.out = ReadType(out, line);
  c.x = ReadExtents(x, line);
  c.w = ReadExtents(w, line);
  const std::map<std::string, Extents*> fields = {
      {"stride", &c.stride}, {"padding", &c.padding}, {"dilation", &c.dilation}};
  while (in >> key >> value) {
    if (key == "with") {
      ReadSteps(value, line, c);
      continue;
    }
    if (!fields.contains(key)) Fail("'" + key + "' is no attribute: " + line);
    *fields.at(key) = ReadExtents(value, line);
  }
  const size_t axes = c.stride.size();
  if (axes == 0 || c.x.size() != axes + 2 || c.w.size() != axes + 2 || c.dilation.size() != axes ||
      c.padding.size() != 2 * axes)
    Fail("extents disagree: " + line);
  return {ReadType(type, line), type == "f32",
          [c](Graph& graph, bool) { AddConvolution(graph, c); }};
}

}  // namespace cudnn_ask
