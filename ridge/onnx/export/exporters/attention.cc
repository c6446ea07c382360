// ONNX exporters: attention and rotary embeddings.
//
// One node from opset 23 on; below, the products, masks and softmax that it stands for, as
// PyTorch's exporters write them.  Shapes: q [B,H,T,D], k [B,Hkv,S,D], v [B,Hkv,S,Dv]; scores
// [B,H,T,S].
#include <limits>
#include <numeric>

#include "ridge/onnx/export/exporter.h"

namespace ridge {
namespace {

constexpr size_t kQ = 0, kK = 1, kV = 2, kMask = 3;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class AttentionWriter {
 public:
  explicit AttentionWriter(OnnxNodeWriter& n)
      : n_(n),
        q_(n.extents().Dims(n.node().inputs[kQ])),
        k_(n.extents().Dims(n.node().inputs[kK])),
        dtype_(n.type(kQ).dtype) {}

  Status Write() {
    RIDGE_ASSIGN_OR_RETURN(const std::string scores, Scores());
    RIDGE_ASSIGN_OR_RETURN(const std::string masked, Masked(Capped(scores)));
    const std::string p = Probabilities(masked);
    if (heads() == kv_heads()) {
      n_.Emit("MatMul", {p, n_.in(kV)});
      return Status();
    }
    RIDGE_ASSIGN_OR_RETURN(const std::string grouped, Grouped(p, k_[2]));
    const std::string product = n_.Temp("MatMul", {grouped, n_.in(kV)});
    RIDGE_ASSIGN_OR_RETURN(const std::string y,
                           n_.ReshapeTo(product, n_.extents().Dims(n_.node().outputs[0])));
    n_.Emit("Identity", {y});
    return Status();
  }

 private:
  int64_t heads() const { return q_[1].here; }
  int64_t kv_heads() const { return k_[1].here; }

  std::string Hidden() { return n_.Scalar(dtype_, -kInfinity); }

  // [B,H,T,X] -> [B,Hkv,(H/Hkv)*T,X]: the heads that read one head of k side by side.
  Result<std::string> Grouped(const std::string& x, const ExportDim& last) {
    const int64_t group = heads() / kv_heads();
    return n_.ReshapeTo(x, {q_[0], k_[1], q_[2] * ExportDim::Fixed(group), last});
  }

  // scale * q k^T
  Result<std::string> Scores() {
    std::string q = n_.in(kQ);
    if (n_.number("scale") != 1) q = n_.Temp("Mul", {q, n_.Scalar(dtype_, n_.number("scale"))});
    const std::vector<int64_t> swapped = {0, 1, 3, 2};
    const std::string k = n_.Temp("Transpose", {n_.in(kK)}, {{"perm", swapped}});
    if (heads() == kv_heads()) return n_.Temp("MatMul", {q, k});
    RIDGE_ASSIGN_OR_RETURN(const std::string grouped, Grouped(q, q_[3]));
    const std::string product = n_.Temp("MatMul", {grouped, k});
    return n_.ReshapeTo(product, {q_[0], q_[1], q_[2], k_[2]});
  }

  // cap * tanh(scores / cap)
  std::string Capped(const std::string& scores) {
    const double cap = n_.number("softcap");
    if (cap == 0) return scores;
    const std::string inner = n_.Temp("Div", {scores, n_.Scalar(dtype_, cap)});
    return n_.Temp("Mul", {n_.Temp("Tanh", {inner}), n_.Scalar(dtype_, cap)});
  }

  Result<std::string> Masked(std::string scores) {
    if (n_.has_input(kMask) && n_.type(kMask).dtype == DType::kBool) {
      scores = n_.Temp("Where", {n_.in(kMask), scores, Hidden()});
    } else if (n_.has_input(kMask)) {
      scores = n_.Temp("Add", {scores, n_.in(kMask)});
    }
    if (n_.integer("causal") == 0) return scores;
    RIDGE_ASSIGN_OR_RETURN(const std::string last,
                           Positions(n_.integer("causal_offset"), q_[2], /*column=*/true));
    RIDGE_ASSIGN_OR_RETURN(const std::string keys, Positions(0, k_[2], /*column=*/false));
    return n_.Temp("Where", {n_.Temp("Less", {last, keys}), Hidden(), scores});
  }

  // i64 first, first + 1, ..: [count,1] or [count].
  Result<std::string> Positions(int64_t first, const ExportDim& count, bool column) {
    if (count.fixed()) {
      Tensor tensor({DType::kI64, column ? Dims{count.here, 1} : Dims{count.here}});
      std::iota(tensor.as_mutable<int64_t>(), tensor.as_mutable<int64_t>() + count.here, first);
      return n_.Constant(tensor, "positions");
    }
    RIDGE_ASSIGN_OR_RETURN(const std::string end, n_.Extents({count}));
    const auto number = [&](int64_t x) { return n_.Scalar(DType::kI64, static_cast<double>(x)); };
    const std::string from_0 = n_.Temp("Range", {number(0), n_.Reshape(end, {}), number(1)});
    const std::string row = first == 0 ? from_0 : n_.Temp("Add", {from_0, number(first)});
    return column ? n_.Reshape(row, {-1, 1}) : row;
  }

  // 0 for a query that sees no key, where softmax alone gives NaN.
  std::string Probabilities(const std::string& masked) {
    const AttrMap along = {{"axis", 3}};
    const std::string p = n_.Temp("Softmax", {masked}, along);
    if (!n_.has_input(kMask) && (n_.integer("causal") == 0 || n_.integer("causal_offset") >= 0))
      return p;
    const std::string largest = n_.Reduce("ReduceMax", masked, {3});
    const std::string blind = n_.Temp("Equal", {largest, Hidden()});
    return n_.Temp("Where", {blind, n_.Scalar(dtype_, 0), p});
  }

  OnnxNodeWriter& n_;
  const std::vector<ExportDim> q_, k_;
  const DType dtype_;
};

// The operator of ONNX counts causality from the first key.
Status WriteAttention(OnnxNodeWriter& n) {
  if (std::get<std::string>(n.node().attrs.at("layout")) != "heads")
    return n.Unsupported("its operands are [B,T,H,D]; ONNX's Attention wants [B,H,T,D]");
  if (n.used(1)) return n.Unsupported("its logsumexp is read; ONNX's Attention has none");
  const bool shifted = n.integer("causal") != 0 && n.integer("causal_offset") != 0;
  if (n.opset() < 23 || shifted || n.has_input(kMask)) return AttentionWriter(n).Write();
  AttrMap attrs = {{"scale", n.number("scale")}, {"is_causal", n.integer("causal")}};
  if (n.number("softcap") != 0) attrs["softcap"] = n.number("softcap");
  n.Emit("Attention", {n.in(kQ), n.in(kK), n.in(kV)}, attrs);
  return Status();
}

// Rotary embeddings by slices and products, for operands and opsets that ONNX's operator lacks.
class RotaryWriter {
 public:
  explicit RotaryWriter(OnnxNodeWriter& n)
      : n_(n), dims_(n.extents().Dims(n.node().inputs[0])), width_(n.type(0).dims.back()) {}

  Status Write() {
    const std::string x1 = Part(0, 0), x2 = Part(0, 1);
    const std::string y1 = n_.Temp("Sub", {Product(x1, 1, 0), Product(x2, 2, 0)});
    const std::string y2 = n_.Temp("Add", {Product(x2, 1, 1), Product(x1, 2, 1)});
    if (n_.integer("interleaved") == 0) {
      n_.Emit("Concat", {y1, y2}, {{"axis", n_.type(0).rank() - 1}});
      return Status();
    }
    RIDGE_ASSIGN_OR_RETURN(const std::string first, Column(y1));
    RIDGE_ASSIGN_OR_RETURN(const std::string second, Column(y2));
    const int64_t behind = n_.type(0).rank();
    const std::string pairs = n_.Temp("Concat", {first, second}, {{"axis", behind}});
    RIDGE_ASSIGN_OR_RETURN(const std::string y, n_.ReshapeTo(pairs, dims_));
    n_.Emit("Identity", {y});
    return Status();
  }

 private:
  // The first (0) or second (1) numbers of the pairs of an input; all of a table that has one for
  // each pair.
  std::string Part(size_t input, int64_t part) {
    if (n_.type(input).dims.back() != width_) return n_.in(input);
    const bool interleaved = n_.integer("interleaved") != 0;
    const int64_t first = interleaved ? part : part * width_ / 2;
    const int64_t end = interleaved ? width_ : (part + 1) * width_ / 2;
    return n_.Temp("Slice", {n_.in(input), n_.Ints({first}), n_.Ints({end}),
                             n_.Ints({n_.type(input).rank() - 1}), n_.Ints({interleaved ? 2 : 1})});
  }

  std::string Product(const std::string& x, size_t table, int64_t part) {
    return n_.Temp("Mul", {x, Part(table, part)});
  }

  // A part of y with an extent of 1 behind.
  Result<std::string> Column(const std::string& y) {
    std::vector<ExportDim> dims = dims_;
    dims.back() = ExportDim::Fixed(width_ / 2);
    dims.push_back(ExportDim::Fixed(1));
    return n_.ReshapeTo(y, dims);
  }

  OnnxNodeWriter& n_;
  const std::vector<ExportDim> dims_;
  const int64_t width_;
};

// ONNX's operator wants x [B,H,T,D], and tables [B,T,D/2].
Status WriteRotary(OnnxNodeWriter& n) {
  const auto is_table = [&](size_t i) {
    const Dims &x = n.type(0).dims, &table = n.type(i).dims;
    return x.size() == 4 && table == Dims{x[0], 1, x[2], x[3] / 2};
  };
  if (n.opset() < 23 || !is_table(1) || !is_table(2)) return RotaryWriter(n).Write();
  std::vector<std::string> inputs = {n.in(0)};
  for (size_t i : {1, 2}) {
    std::vector<ExportDim> dims = n.extents().Dims(n.node().inputs[i]);
    dims.erase(dims.begin() + 1);
    RIDGE_ASSIGN_OR_RETURN(const std::string table, n.ReshapeTo(n.in(i), dims));
    inputs.push_back(table);
  }
  n.Emit("RotaryEmbedding", inputs, {{"interleaved", n.integer("interleaved")}});
  return Status();
}

constexpr OnnxExporter kTable[] = {
    {"attention", WriteAttention},
    {"rotary_embedding", WriteRotary},
};

}  // namespace

std::span<const OnnxExporter> OnnxAttentionExporters() { return kTable; }

}  // namespace ridge
