// ONNX exporters: recurrent layers.
//
// Ours read the input's product with its weight; ONNX's make it themselves.  Where that product is
// a matmul, its operands become ONNX's (what nothing reads then is left out of the file); else the
// weight is the identity, which is right and costs a product.  Blocks of gates change their order.
#include "ridge/graph/ops/shared/recurrent.h"

#include "ridge/onnx/export/exporter.h"

namespace ridge {
namespace {

// What the gates read of the input: x [T,N,I], w [G*H,I], and the bias [G*H] or "".
struct InputProduct {
  std::string x, w, bias;
};

class LayerWriter {
 public:
  LayerWriter(OnnxNodeWriter& n, const RecurrentCell& cell) : n_(n), cell_(cell) {
    hidden_ = n.type(1).dims[1];
    blocks_ = cell.blocks();
  }

  Status Write() {
    if (cell_.has_cells() && n_.used(cell_.forward.Output("cells"))) {
      return n_.Unsupported(
          "its cells are read; ONNX's LSTM gives those of the last step alone. hint: export a "
          "graph that reads y only");
    }
    const std::string r_bias = StateBias();
    const InputProduct input = FindProduct();
    std::vector<std::string> inputs = {input.x, AsLayer(input.w), AsLayer(InTheirOrder(n_.in(1))),
                                       Bias(input.bias, r_bias), /*sequence_lens=*/""};
    for (size_t i = 0; i < cell_.forward.inputs.size(); ++i) {
      if (cell_.forward.inputs[i].shape != RecurrentOperand::kState) continue;
      RIDGE_ASSIGN_OR_RETURN(const std::string state, Start(i));
      inputs.push_back(state);
    }
    return Emit(inputs);
  }

 private:
  // [N,H] -> [1,N,H]
  Result<std::string> Start(size_t input) {
    std::vector<ExportDim> dims = n_.extents().Dims(n_.node().inputs[input]);
    dims.insert(dims.begin(), ExportDim::Fixed(1));
    return n_.ReshapeTo(n_.in(input), dims);
  }

  // Y is [T,1,N,H]; ours has no directions.
  Status Emit(const std::vector<std::string>& inputs) {
    AttrMap attrs = {{"hidden_size", hidden_}};
    attrs["direction"] = std::string(n_.integer("reverse") != 0 ? "reverse" : "forward");
    if (IsGru()) attrs["linear_before_reset"] = 1;
    const bool relu = cell_.flag != nullptr && n_.integer(cell_.flag) != 0;
    if (relu) attrs["activations"] = "Relu";  // Tanh without
    const std::string y = n_.Temp(cell_.onnx.name, inputs, attrs);
    const std::vector<int64_t> order = {1, 0, 2, 3};
    const std::string first = n_.Temp("Transpose", {y}, {{"perm", order}});
    RIDGE_ASSIGN_OR_RETURN(const std::string flat,
                           n_.ReshapeTo(first, n_.extents().Dims(n_.node().outputs[0])));
    n_.Emit("Identity", {flat});
    return Status();
  }

  bool IsGru() const { return &cell_ == &kGruCell; }
  // The bias of n lies under the reset gate, as with linear_before_reset.  [G*H] or "".
  std::string StateBias() {
    if (!IsGru() || !n_.has_input(3)) return "";
    return n_.Temp("Concat", {Zeros(2 * hidden_), n_.in(3)}, {{"axis", 0}});
  }

  std::string Zeros(int64_t count) {
    return n_.Constant(Tensor({n_.type(0).dtype, {count}}), "zeros");
  }

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
    return blocks_ == 1 ? 0 : GateAt(n_.text("gates"), cell_.onnx_gates[block]);
  }

  // [G*H] or [G*H,X], block by block.
  std::string InTheirOrder(const std::string& x) {
    if (blocks_ == 1 || n_.text("gates") == cell_.onnx_gates) return x;
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
  const RecurrentCell& cell_;
  int64_t hidden_ = 0, blocks_ = 0;
};

template <const RecurrentCell& cell>
Status Write(OnnxNodeWriter& n) {
  return LayerWriter(n, cell).Write();
}

constexpr OnnxExporter kTable[] = {
    {"gru", Write<kGruCell>}, {"lstm", Write<kLstmCell>}, {"rnn", Write<kRnnCell>}};

}  // namespace

std::span<const OnnxExporter> OnnxRecurrentExporters() { return kTable; }

}  // namespace ridge
