// lstm: the two-layer language model of PyTorch's examples (word_language_model: embedding and
// hidden width 200, WikiText-2's 33,278 words; 13,987,678 parameters with 35 tokens a sample),
// without dropout.
//
// i, f, g, o = sigmoid, sigmoid, tanh, sigmoid of W_ih x + b_ih + W_hh h + b_hh;
// c = f c + i g; h = o tanh(c) (Hochreiter and Schmidhuber, 1997, with forget gates).  The input's
// part of all steps is one product, the steps are one operator; h and c are zero before the first.
// In the layers time comes before batch: a step's samples lie together.
#include <fmt/format.h>

#include <cmath>

#include "ridge/models/builtin.h"
#include "ridge/models/layers.h"
#include "ridge/models/weights/names.h"

namespace ridge {
namespace {

// x [T,B,in] -> [T,B,width]
Value Layer(GraphBuilder& b, Value x, int64_t width, int64_t layer) {
  if (!b.ok()) return {};
  const TensorType in = x.type();
  const Init init = Init::Uniform(1 / std::sqrt(static_cast<double>(width)));
  auto parameter = [&](const char* name, Dims dims) {
    return b.Parameter(fmt::format("rnn.{}_l{}", name, layer), {in.dtype, std::move(dims)}, init);
  };
  const Value weight_ih = parameter("weight_ih", {4 * width, in.dims[2]});
  const Value weight_hh = parameter("weight_hh", {4 * width, width});
  const Value bias_hh = parameter("bias_hh", {4 * width});
  const Value bias = parameter("bias_ih", {4 * width}) + bias_hh;
  const Value projected = Op("matmul", {x, weight_ih, bias}, {{"transpose_b", 1}});
  const Value zero = Expand(b.Scalar(in.dtype, 0), {in.dims[1], width});
  return Op("lstm", {projected, weight_hh, zero, zero});
}

Result<Graph> BuildLstm(const ModelArguments& arguments, const ModelOptions& options) {
  GraphBuilder b("lstm");
  const int64_t vocab = arguments["vocab"], width = arguments["hidden"];
  const Value tokens = TokenInput(b, options, arguments["tokens"]);
  Value x = Embedding(b, tokens, vocab, width, 0.1, options.dtype, "encoder");
  x = Transpose(x, {1, 0, 2});
  for (int64_t layer = 0; layer < arguments["layers"]; ++layer) x = Layer(b, x, width, layer);
  x = Transpose(x, {1, 0, 2});
  LanguageModelEnd(b, options, b.Linear(x, vocab, "decoder"));
  return b.Build();
}

}  // namespace

BuiltinModel LstmModel() {
  return {.name = "lstm",
          .doc = "the two-layer LSTM language model of PyTorch's examples, without dropout",
          .parameters = {{"vocab", "size of the vocabulary", 33278},
                         {"tokens", "tokens of a sample", 35, 1, 4096},
                         {"hidden", "width of embedding and layers", 200, 1, 65536},
                         {"layers", "layers", 2, 1, 64}},
          .build = BuildLstm,
          .weight_names = PlainWeightNames};
}

}  // namespace ridge
