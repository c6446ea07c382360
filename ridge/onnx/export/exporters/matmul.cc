// ONNX exporters: products of matrices.
#include <numeric>

#include "ridge/onnx/export/exporter.h"

namespace ridge {
namespace {

std::string Transposed(OnnxNodeWriter& n, size_t input, DType dtype) {
  const size_t rank = n.type(input).dims.size();
  std::vector<int64_t> permutation(rank);
  std::iota(permutation.begin(), permutation.end(), 0);
  std::swap(permutation[rank - 1], permutation[rank - 2]);
  return n.Temp("Transpose", {n.As(input, dtype)}, {{"perm", permutation}});
}

// Gemm, where all is of rank 2: weights keep their order then.  Else MatMul, with Transpose and
// Add as needed.
Status WriteMatmul(OnnxNodeWriter& n) {
  if (!n.text("epilogue").empty())
    return n.Unsupported("has an epilogue; export runs before passes");
  const bool transpose_a = n.integer("transpose_a") != 0,
             transpose_b = n.integer("transpose_b") != 0;
  const bool matrices = n.type(0).dims.size() == 2 && n.type(1).dims.size() == 2;
  const bool adds = n.has_input(2), transposes = transpose_a || transpose_b;
  const DType dtype = n.ComputeInWidest();
  if (matrices && (adds || (transposes && n.opset() >= 11))) {  // before 11 it must add something
    std::vector<std::string> inputs = {n.As(0, dtype), n.As(1, dtype)};
    if (adds) inputs.push_back(n.As(2, dtype));
    n.EmitRounded("Gemm", inputs, {{"transA", transpose_a}, {"transB", transpose_b}}, dtype);
    return Status();
  }
  const std::string a = transpose_a ? Transposed(n, 0, dtype) : n.As(0, dtype);
  const std::string b = transpose_b ? Transposed(n, 1, dtype) : n.As(1, dtype);
  if (!adds) {
    n.EmitRounded("MatMul", {a, b}, {}, dtype);
  } else {
    n.EmitRounded("Add", {n.Temp("MatMul", {a, b}), n.As(2, dtype)}, {}, dtype);
  }
  return Status();
}

constexpr OnnxExporter kTable[] = {{"matmul", WriteMatmul}};

}  // namespace

std::span<const OnnxExporter> OnnxMatmulExporters() { return kTable; }

}  // namespace ridge
