// The cells' formulas.  With dh what y and the next step hand back, dc likewise:
//
//   lstm  i, f, o = sigmoid, g = tanh; c = f c + i g; h = o tanh(c)
//         do = dh tanh(c), dc += dh o (1 - tanh(c)^2), di = dc g, dg = dc i, df = dc c[t-1];
//         step t-1 gets dprojected r and dc f
//   gru   r, z = sigmoid, n = tanh(p + r q), q = inner + bias; h = n + z (h[t-1] - n)
//         dz = dh (h[t-1] - n), dn = dh (1 - z), dr = dn q, dq = dn r;
//         step t-1 gets dinner r + dh z, where dinner has dq in the place of dn
//   rnn   h = tanh or relu; step t-1 gets dprojected r
//
// lstm: Hochreiter and Schmidhuber, 1997, with the forget gate of Gers et al., 2000.  gru: Cho et
// al., 2014, in the form that cuDNN and PyTorch compute: the reset gate multiplies the candidate's
// product with the state, not the state, so one product a step does for all gates.  rnn: Elman,
// 1990.  What the gates were is kept for the gradient.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ridge/graph/ops/shared/recurrent.h"

namespace ridge {
namespace {

using Operand = RecurrentOperand;
using enum RecurrentOperand::Shape;

constexpr const char* kOneASample = "one state a sample";
constexpr const char* kOneAStep = "one state a step";

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// sums[i] += r[i] . h for the rows i of r.
void AddInner(const double* r, int64_t rows, int64_t hidden, const double* h, double* sums) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t k = 0; k < hidden; ++k) sums[row] += r[row * hidden + k] * h[k];
  }
}

int64_t BlockAt(const RecurrentRow& row, char gate) {
  return GateAt(row.call.text("gates"), gate) * row.hidden;
}

// ---- lstm

constexpr Operand kLstmIn[] = {{"projected", kSteps, 4},
                               {"r", kWeight, 4},
                               {"h", kState, 1, kOneASample},
                               {"c", kState, 1, "as h"}};
constexpr Operand kLstmOut[] = {{"y", kSteps}, {"cells", kSteps}, {"activated", kSteps, 4}};
constexpr Operand kLstmGradIn[] = {{"r", kWeight, 4},
                                   {"c", kState, 1, kOneASample},
                                   {"cells", kSteps, 1, kOneAStep},
                                   {"activated", kSteps, 4},
                                   {"dy", kSteps, 1, kOneAStep},
                                   {"dcells", kSteps, 1, kOneAStep, /*optional=*/true}};
constexpr Operand kLstmGradOut[] = {{"dprojected", kSteps, 4}, {"dh", kState}, {"dc", kState}};

struct LstmBlocks {
  int64_t i, f, g, o;
  explicit LstmBlocks(const RecurrentRow& row)
      : i(BlockAt(row, 'i')), f(BlockAt(row, 'f')), g(BlockAt(row, 'g')), o(BlockAt(row, 'o')) {}
};

void Lstm(const RecurrentRow& row) {
  const LstmBlocks at(row);
  const double* c = row.Before(row.in[3], row.out[1]);
  double *y = row.out[0] + row.now, *cell = row.out[1] + row.now, *a = row.out[2] + 4 * row.now;
  std::copy_n(row.in[0] + 4 * row.now, 4 * row.hidden, a);
  AddInner(row.in[1], 4 * row.hidden, row.hidden, row.Before(row.in[2], row.out[0]), a);
  for (int64_t k = 0; k < row.hidden; ++k, ++a) {
    for (const int64_t gate : {at.i, at.f, at.o}) a[gate] = Sigmoid(a[gate]);
    a[at.g] = std::tanh(a[at.g]);
    cell[k] = a[at.f] * c[k] + a[at.i] * a[at.g];
    y[k] = a[at.o] * std::tanh(cell[k]);
  }
}

void LstmGrad(const RecurrentRow& row) {
  const LstmBlocks at(row);
  const double *before = row.Before(row.in[1], row.in[2]), *cell = row.in[2] + row.now;
  const double* a = row.in[3] + 4 * row.now;
  double *d = row.out[0] + 4 * row.now, *dh = row.out[1] + row.sample;
  double* dc = row.out[2] + row.sample;
  const double* dcells = row.call.has_input(5) ? row.in[5] + row.now : nullptr;
  for (int64_t k = 0; k < row.hidden; ++k, ++a, ++d) {
    const double i = a[at.i], f = a[at.f], g = a[at.g], o = a[at.o], t = std::tanh(cell[k]);
    if (dcells != nullptr) dc[k] += dcells[k];
    dc[k] += dh[k] * o * (1 - t * t);
    d[at.o] = dh[k] * t * o * (1 - o);
    d[at.i] = dc[k] * g * i * (1 - i);
    d[at.g] = dc[k] * i * (1 - g * g);
    d[at.f] = dc[k] * before[k] * f * (1 - f);
    dc[k] *= f;
    dh[k] = 0;
  }
}

constexpr const char* kLstmActivations[] = {"Sigmoid", "Tanh", "Tanh"};

// ---- gru

constexpr Operand kGruIn[] = {{"projected", kSteps, 3},
                              {"r", kWeight, 3},
                              {"h", kState, 1, kOneASample},
                              {"bias", kVector, 1, "the candidate's", /*optional=*/true}};
constexpr Operand kGruOut[] = {{"y", kSteps}, {"activated", kSteps, 4}};
constexpr Operand kGruGradIn[] = {{"r", kWeight, 3},
                                  {"h", kState, 1, kOneASample},
                                  {"y", kSteps, 1, kOneAStep},
                                  {"activated", kSteps, 4},
                                  {"dy", kSteps, 1, kOneAStep}};
constexpr Operand kGruGradOut[] = {
    {"dprojected", kSteps, 3}, {"dinner", kSteps, 3}, {"dh", kState}};

struct GruBlocks {
  int64_t r, z, n;
  explicit GruBlocks(const RecurrentRow& row)
      : r(BlockAt(row, 'r')), z(BlockAt(row, 'z')), n(BlockAt(row, 'n')) {}
};

void Gru(const RecurrentRow& row) {
  const GruBlocks at(row);
  const int64_t hidden = row.hidden;
  const double *p = row.in[0] + 3 * row.now, *before = row.Before(row.in[2], row.out[0]);
  double *y = row.out[0] + row.now, *a = row.out[1] + 4 * row.now;
  std::vector<double> inner(static_cast<size_t>(3 * hidden));
  AddInner(row.in[1], 3 * hidden, hidden, before, inner.data());
  const double *i = inner.data(), *bias = row.call.has_input(3) ? row.in[3] : nullptr;
  for (int64_t k = 0; k < hidden; ++k, ++p, ++i) {
    const double r = Sigmoid(p[at.r] + i[at.r]);
    const double z = Sigmoid(p[at.z] + i[at.z]);
    const double q = i[at.n] + (bias == nullptr ? 0 : bias[k]);
    const double n = std::tanh(p[at.n] + r * q);
    a[k] = r;
    a[hidden + k] = z;
    a[2 * hidden + k] = n;
    a[3 * hidden + k] = q;
    y[k] = n + z * (before[k] - n);
  }
}

void GruGrad(const RecurrentRow& row) {
  const GruBlocks at(row);
  const int64_t hidden = row.hidden;
  const double *before = row.Before(row.in[1], row.in[2]), *a = row.in[3] + 4 * row.now;
  double *dp = row.out[0] + 3 * row.now, *di = row.out[1] + 3 * row.now;
  double* dh = row.out[2] + row.sample;
  for (int64_t k = 0; k < hidden; ++k, ++dp, ++di) {
    const double r = a[k], z = a[hidden + k], n = a[2 * hidden + k], q = a[3 * hidden + k];
    const double dn = dh[k] * (1 - z) * (1 - n * n);
    dp[at.z] = di[at.z] = dh[k] * (before[k] - n) * z * (1 - z);
    dp[at.r] = di[at.r] = dn * q * r * (1 - r);
    dp[at.n] = dn;
    di[at.n] = dn * r;
    dh[k] *= z;
  }
}

constexpr const char* kGruActivations[] = {"Sigmoid", "Tanh"};

// ---- rnn

constexpr Operand kRnnIn[] = {{"projected", kSteps}, {"r", kWeight}, {"h", kState, 1, kOneASample}};
constexpr Operand kRnnOut[] = {{"y", kSteps}};
constexpr Operand kRnnGradIn[] = {{"r", kWeight}, {"y", kSteps}, {"dy", kSteps, 1, "as y"}};
constexpr Operand kRnnGradOut[] = {{"dprojected", kSteps}, {"dh", kState}};

void Rnn(const RecurrentRow& row) {
  const bool relu = row.call.integer("relu") != 0;
  double* y = row.out[0] + row.now;
  std::copy_n(row.in[0] + row.now, row.hidden, y);
  AddInner(row.in[1], row.hidden, row.hidden, row.Before(row.in[2], row.out[0]), y);
  for (int64_t k = 0; k < row.hidden; ++k) y[k] = relu ? std::max(y[k], 0.0) : std::tanh(y[k]);
}

void RnnGrad(const RecurrentRow& row) {
  const bool relu = row.call.integer("relu") != 0;
  double *d = row.out[0] + row.now, *dh = row.out[1] + row.sample;
  for (int64_t k = 0; k < row.hidden; ++k) {
    const double y = row.in[1][row.now + k], slope = relu ? (y > 0 ? 1 : 0) : 1 - y * y;
    d[k] = dh[k] * slope;
    dh[k] = 0;
  }
}

constexpr const char* kRnnActivations[] = {"Tanh"};

}  // namespace

constinit const RecurrentCell kLstmCell = {
    .gates = "ifgo",
    .flag = nullptr,
    .forward =
        {.name = "lstm",
         .doc = "One layer and direction over all steps: i, f, o = sigmoid and g = tanh of the "
                "blocks of projected[t] + h r^T; c = f * c + i * g; h = o * tanh(c); y[t] = h, "
                "cells[t] = c. projected [T,N,4H] is the input's product with its weight plus the "
                "biases; r [4H,H]; h and c [N,H] before the first step. gates names the blocks of "
                "projected and r in order. reverse=1 goes from the last step to the first. "
                "activated [T,N,4H] is kept for the gradient.",
         .inputs = kLstmIn,
         .outputs = kLstmOut,
         .sequence = "projected",
         .flops = 55,  // five exponentials of about 10, and 5 more
         .in_place = {"activated", "projected"},
         .row = Lstm},
    .back = {.name = "lstm_grad",
             .doc =
                 "The gradients of lstm in projected, h and c, from its r and c, what it gave as "
                 "cells and activated, dy, and dcells where cells was read. That of r is "
                 "dprojected^T times the states before each step.",
             .inputs = kLstmGradIn,
             .outputs = kLstmGradOut,
             .sequence = "activated",
             .flops = 35,
             .in_place = {"dprojected", "activated"},
             .row = LstmGrad},
    .onnx = {"LSTM", 7, 22},
    .onnx_gates = "iofg",
    .onnx_activations = kLstmActivations,
};

constinit const RecurrentCell kGruCell = {
    .gates = "rzn",
    .flag = nullptr,
    .forward =
        {.name = "gru",
         .doc = "One layer and direction over all steps: with the blocks p of projected[t] and i "
                "of h r^T, reset = sigmoid(p + i), z = sigmoid(p + i), n = tanh(p + reset * (i + "
                "bias)); h = (1 - z) * n + z * h; y[t] = h. projected [T,N,3H] is the input's "
                "product with its weight plus the other biases; r [3H,H]; h [N,H] before the first "
                "step; bias [H]. gates names the blocks of projected and r in order: r is reset. "
                "reverse=1 goes from the last step to the first. activated [T,N,4H] (reset, z, n, "
                "i + bias) is kept for the gradient.",
         .inputs = kGruIn,
         .outputs = kGruOut,
         .sequence = "projected",
         .flops = 38,  // three exponentials of about 10, and 8 more
         .in_place = {},
         .row = Gru},
    .back = {.name = "gru_grad",
             .doc =
                 "The gradients of gru in projected and h, from its r and h, what it gave as y and "
                 "activated, and dy. dinner is the gradient of h r^T + bias; that of r is dinner^T "
                 "times the states before each step, that of bias the sum of dinner's candidate.",
             .inputs = kGruGradIn,
             .outputs = kGruGradOut,
             .sequence = "activated",
             .flops = 20,
             .in_place = {},
             .row = GruGrad},
    .onnx = {"GRU", 7, 22},
    .onnx_gates = "zrn",
    .onnx_activations = kGruActivations,
};

constinit const RecurrentCell kRnnCell = {
    .gates = "",
    .flag = "relu",
    .forward =
        {.name = "rnn",
         .doc = "One layer and direction over all steps: h = tanh(projected[t] + h r^T), or relu "
                "of it with relu=1; y[t] = h. projected [T,N,H] is the input's product with its "
                "weight plus the biases; r [H,H]; h [N,H] before the first step. reverse=1 goes "
                "from the last step to the first.",
         .inputs = kRnnIn,
         .outputs = kRnnOut,
         .sequence = "projected",
         .flops = 11,
         .in_place = {"y", "projected"},
         .row = Rnn},
    .back = {.name = "rnn_grad",
             .doc =
                 "The gradients of rnn in projected and h, from its r, what it gave as y, and dy. "
                 "That of r is dprojected^T times the states before each step.",
             .inputs = kRnnGradIn,
             .outputs = kRnnGradOut,
             .sequence = "y",
             .flops = 4,
             .in_place = {"dprojected", "dy"},
             .row = RnnGrad},
    .onnx = {"RNN", 7, 22},
    .onnx_gates = "",
    .onnx_activations = kRnnActivations,
};

}  // namespace ridge
