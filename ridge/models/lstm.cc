// lstm: the two-layer language model of PyTorch's examples (word_language_model: embedding and
// hidden width 200, WikiText-2's 33,278 words; 13,987,678 parameters with 35 tokens a sample),
// without dropout.
//
// i, f, g, o = sigmoid, sigmoid, tanh, sigmoid of W_ih x + b_ih + W_hh h + b_hh;
// c = f c + i g; h = o tanh(c) (Hochreiter and Schmidhuber, 1997, with forget gates).  The input's
// part of all steps is one product; the steps are nodes of their own.
#include <fmt/format.h>

#include <cmath>

#include "ridge/models/builtin.h"
#include "ridge/models/layers.h"
#include "ridge/models/weights/names.h"

namespace ridge {
namespace {

// Columns [k * width, (k+1) * width) of gates [B,4*width].
Value Gate(Value gates, int64_t k, int64_t width) {
  return Slice(gates, 1, k * width, (k + 1) * width);
}

struct LstmState {
  Value h, c;  // [B,width]; invalid before the first step, when both are zero
};

LstmState Step(Value from_input, Value weight_hh, LstmState state, int64_t width) {
  Value gates = from_input;
  if (state.h.valid()) gates = gates + MatMul(state.h, weight_hh, false, true);
  const Value i = Sigmoid(Gate(gates, 0, width));
  const Value f = Sigmoid(Gate(gates, 1, width));
  const Value g = Tanh(Gate(gates, 2, width));
  const Value o = Sigmoid(Gate(gates, 3, width));
  Value c = i * g;
  if (state.c.valid()) c = f * state.c + c;
  return {o * Tanh(c), c};
}

// x [B,T,in] -> [B,T,width]
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
  LstmState state;
  std::vector<Value> outputs;
  for (int64_t t = 0; t < in.dims[1]; ++t) {
    const Value step = Gather(projected, b.Scalar(DType::kI64, static_cast<double>(t)), 1);
    state = Step(step, weight_hh, state, width);
    outputs.push_back(Reshape(state.h, {in.dims[0], 1, width}));
  }
  return Concat(outputs, 1);
}

Result<Graph> BuildLstm(const ModelArguments& arguments, const ModelOptions& options) {
  GraphBuilder b("lstm");
  const int64_t vocab = arguments["vocab"], width = arguments["hidden"];
  const Value tokens = TokenInput(b, options, arguments["tokens"]);
  Value x = Embedding(b, tokens, vocab, width, 0.1, options.dtype, "encoder");
  for (int64_t layer = 0; layer < arguments["layers"]; ++layer) x = Layer(b, x, width, layer);
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
