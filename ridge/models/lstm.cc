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
Value Gate(GraphBuilder& b, Value gates, int64_t k, int64_t width) {
  return b.Op("slice", {gates},
              {{"axes", std::vector<int64_t>{1}},
               {"starts", std::vector<int64_t>{k * width}},
               {"ends", std::vector<int64_t>{(k + 1) * width}}});
}

struct LstmState {
  Value h, c;  // [B,width]; invalid before the first step, when both are zero
};

LstmState Step(GraphBuilder& b, Value from_input, Value weight_hh, LstmState state, int64_t width) {
  Value gates = from_input;
  if (state.h.valid()) gates = b.Add(gates, b.MatMul(state.h, weight_hh, false, true));
  const Value i = b.Op("sigmoid", {Gate(b, gates, 0, width)});
  const Value f = b.Op("sigmoid", {Gate(b, gates, 1, width)});
  const Value g = b.Op("tanh", {Gate(b, gates, 2, width)});
  const Value o = b.Op("sigmoid", {Gate(b, gates, 3, width)});
  Value c = b.Mul(i, g);
  if (state.c.valid()) c = b.Add(b.Mul(f, state.c), c);
  return {b.Mul(o, b.Op("tanh", {c})), c};
}

// x [B,T,in] -> [B,T,width]
Value Layer(GraphBuilder& b, Value x, int64_t width, int64_t layer) {
  if (!b.ok()) return {};
  const TensorType in = b.type(x);
  const Init init = Init::Uniform(1 / std::sqrt(static_cast<double>(width)));
  auto parameter = [&](const char* name, Dims dims) {
    return b.Parameter(fmt::format("rnn.{}_l{}", name, layer), {in.dtype, std::move(dims)}, init);
  };
  const Value weight_ih = parameter("weight_ih", {4 * width, in.dims[2]});
  const Value weight_hh = parameter("weight_hh", {4 * width, width});
  const Value bias = b.Add(parameter("bias_ih", {4 * width}), parameter("bias_hh", {4 * width}));
  const Value projected = b.Op("matmul", {x, weight_ih, bias}, {{"transpose_b", int64_t{1}}});
  LstmState state;
  std::vector<Value> outputs;
  for (int64_t t = 0; t < in.dims[1]; ++t) {
    const Value step = b.Op("gather", {projected, b.Scalar(DType::kI64, static_cast<double>(t))},
                            {{"axis", int64_t{1}}});
    state = Step(b, step, weight_hh, state, width);
    outputs.push_back(b.Reshape(state.h, {in.dims[0], 1, width}));
  }
  return b.Op("concat", outputs, {{"axis", int64_t{1}}});
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
