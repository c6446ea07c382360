// ONNX exporters: recurrent layers.
//
// Ours read the input's product with its weight; ONNX's make it themselves.  Where that product is
// a matmul, its operands become ONNX's (what nothing reads then is left out of the file); else the
// weight is the identity, which is right and costs a product.  Blocks of gates change their order.
#include <algorithm>

#include "ridge/onnx/export/exporter.h"

namespace ridge {
namespace {

// What the gates read of the input: x [T,N,I], w [G*H,I], and the bias [G*H] or "".
struct InputProduct {
  std::string x, w, bias;
};

class LayerWriter {
 public:
  // `ours` and `theirs` name the blocks in order; empty: one block.
  LayerWriter(OnnxNodeWriter& n, std::string ours, std::string theirs)
      : n_(n), ours_(std::move(ours)), theirs_(std::move(theirs)) {
    hidden_ = n.type(1).dims[1];
    blocks_ = n.type(1).dims[0] / std::max<int64_t>(hidden_, 1);
  }

  // X, W, R and B; `r_bias` [G*H] or "" goes into the second half of B.
  std::vector<std::string> Operands(const std::string& r_bias) {
    const InputProduct input = FindProduct();
    return {input.x, AsLayer(input.w), AsLayer(InTheirOrder(n_.in(1))), Bias(input.bias, r_bias)};
  }

  // [N,H] -> [1,N,H]
  Result<std::string> Start(size_t input) {
    std::vector<ExportDim> dims = n_.extents().Dims(n_.node().inputs[input]);
    dims.insert(dims.begin(), ExportDim::Fixed(1));
    return n_.ReshapeTo(n_.in(input), dims);
  }

  // Y is [T,1,N,H]; ours has no directions.
  Status Emit(const char* op_type, const std::vector<std::string>& inputs, AttrMap attrs) {
    attrs["hidden_size"] = hidden_;
    attrs["direction"] = std::string(n_.integer("reverse") != 0 ? "reverse" : "forward");
    const std::string y = n_.Temp(op_type, inputs, attrs);
    const std::vector<int64_t> order = {1, 0, 2, 3};
    const std::string first = n_.Temp("Transpose", {y}, {{"perm", order}});
    RIDGE_ASSIGN_OR_RETURN(const std::string flat,
                           n_.ReshapeTo(first, n_.extents().Dims(n_.node().outputs[0])));
    n_.Emit("Identity", {flat});
    return Status();
  }

  std::string Zeros(int64_t count) {
    return n_.Constant(Tensor({n_.type(0).dtype, {count}}), "zeros");
  }
  int64_t hidden() const { return hidden_; }

 private:
  InputProduct FindProduct() {
    const Node* product = n_.Producer(0);
    if (product == nullptr || product->op->name != "matmul") return Identity();
    OnnxNodeWriter p = n_.Of(*product);
    const bool fits = p.integer("transpose_a") == 0 && p.text("epilogue").empty() &&
                      p.type(0).rank() == 3 && p.type(1).rank() == 2 &&
                      (!p.has_input(2) || p.type(2).dims == Dims{blocks_ * hidden_});
    if (!fits) return Identity();
    std::string w = p.in(1);
    if (p.integer("transpose_b") == 0) w = n_.Temp("Transpose", {w}, {{"perm", {1, 0}}});
    return {p.in(0), InTheirOrder(w), p.has_input(2) ? InTheirOrder(p.in(2)) : ""};
  }

  // Block b of ONNX is our block OursOf(b), so row b*H+i takes column OursOf(b)*H+i.
  InputProduct Identity() {
    const int64_t rows = blocks_ * hidden_;
    Tensor w({n_.type(0).dtype, {rows, rows}});
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t column = OursOf(row / hidden_) * hidden_ + row % hidden_;
      StoreFromDouble(w.type().dtype, w.mutable_data(), row * rows + column, 1);
    }
    return {n_.in(0), n_.Constant(w, "identity"), ""};
  }

  int64_t OursOf(int64_t block) const {
    if (ours_.empty()) return block;
    return static_cast<int64_t>(ours_.find(theirs_[static_cast<size_t>(block)]));
  }

  // [G*H] or [G*H,X], block by block.
  std::string InTheirOrder(const std::string& x) {
    if (ours_ == theirs_) return x;
    std::vector<int64_t> order;
    for (int64_t b = 0; b < blocks_; ++b) order.push_back(OursOf(b));
    const std::string blocks = n_.Reshape(x, {blocks_, -1});
    return n_.Temp("Gather", {blocks, n_.Ints(order)}, {{"axis", 0}});
  }

  std::string AsLayer(const std::string& w) { return n_.Reshape(w, {1, blocks_ * hidden_, -1}); }

  // [1, 2*G*H]: that of the input, then that of the state.
  std::string Bias(const std::string& bias, const std::string& r_bias) {
    if (bias.empty() && r_bias.empty()) return "";
    const int64_t count = blocks_ * hidden_;
    const auto part = [&](const std::string& b) {
      return b.empty() ? Zeros(count) : n_.Reshape(b, {count});
    };
    const std::string both = n_.Temp("Concat", {part(bias), part(r_bias)}, {{"axis", 0}});
    return n_.Reshape(both, {1, 2 * count});
  }

  OnnxNodeWriter& n_;
  const std::string ours_, theirs_;
  int64_t hidden_ = 0, blocks_ = 0;
};

Status WriteLstm(OnnxNodeWriter& n) {
  if (n.used(1)) {
    return n.Unsupported(
        "its cells are read; ONNX's LSTM gives those of the last step alone. hint: export a graph "
        "that reads y only");
  }
  LayerWriter layer(n, n.text("gates"), "iofg");
  std::vector<std::string> inputs = layer.Operands("");
  inputs.emplace_back();  // sequence_lens
  for (const size_t start : {2, 3}) {
    RIDGE_ASSIGN_OR_RETURN(const std::string state, layer.Start(start));
    inputs.push_back(state);
  }
  return layer.Emit("LSTM", inputs, {});
}

// The bias of n lies under the reset gate, as with linear_before_reset.
Status WriteGru(OnnxNodeWriter& n) {
  LayerWriter layer(n, n.text("gates"), "zrn");
  std::string r_bias;
  if (n.has_input(3)) {
    const std::string none = layer.Zeros(2 * layer.hidden());
    r_bias = n.Temp("Concat", {none, n.in(3)}, {{"axis", 0}});
  }
  std::vector<std::string> inputs = layer.Operands(r_bias);
  inputs.emplace_back();
  RIDGE_ASSIGN_OR_RETURN(const std::string state, layer.Start(2));
  inputs.push_back(state);
  return layer.Emit("GRU", inputs, {{"linear_before_reset", 1}});
}

Status WriteRnn(OnnxNodeWriter& n) {
  LayerWriter layer(n, "", "");
  std::vector<std::string> inputs = layer.Operands("");
  inputs.emplace_back();
  RIDGE_ASSIGN_OR_RETURN(const std::string state, layer.Start(2));
  inputs.push_back(state);
  AttrMap attrs;  // Tanh without
  if (n.integer("relu") != 0) attrs["activations"] = "Relu";
  return layer.Emit("RNN", inputs, attrs);
}

constexpr OnnxExporter kTable[] = {{"gru", WriteGru}, {"lstm", WriteLstm}, {"rnn", WriteRnn}};

}  // namespace

std::span<const OnnxExporter> OnnxRecurrentExporters() { return kTable; }

}  // namespace ridge
