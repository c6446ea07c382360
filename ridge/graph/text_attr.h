// Types, tensors and attributes as text: shared by the text graph, expressions (ops/fused) and the
// operators' case files.
//
//   1   -0.5   1e-05   inf   "text"   [1,2]   [0.5,1.0]   tensor f32[2] [1.0, 2.0]
//   tensor f32[100] base64("...")   { graph inner ... }
//
// An integer where a number is declared is converted by InferCall(), not here.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ridge/graph/attributes.h"
#include "ridge/graph/text_lexer.h"

namespace ridge {

// Printing.  Numbers are the shortest that read back the same, always with a point or an exponent.
std::string PrintNumber(double value);
std::string PrintAttr(const Attr& attr);
// Elements with ", " between; base64("...") for more than 64 elements and for NaNs with payloads.
// `open` and `close` enclose a list; a scalar has none.
std::string PrintTensorValues(const Tensor& tensor, std::string_view open, std::string_view close);

// Reading.  `text` must be exactly one attribute.
Result<Attr> ParseAttr(std::string_view text);
// `text` must be exactly one type: "f32[2,3]".
Result<TensorType> ParseType(std::string_view text);

// The same from a reader; `depth` counts the enclosing subgraphs.
Result<Attr> ReadAttr(TokenReader& reader, int depth);
Result<double> ReadNumber(TokenReader& reader, std::string_view what);
Result<int64_t> ReadInteger(TokenReader& reader, std::string_view what);

// A dimension as written: "784", "batch" or "batch=128".
struct TextDim {
  std::string name;               // "" when it has none
  std::optional<int64_t> extent;  // nullopt: not bound
};
Result<DType> ReadDType(TokenReader& reader);
Result<std::vector<TextDim>> ReadDims(TokenReader& reader);
// A type without named dimensions.
Result<TensorType> ReadType(TokenReader& reader);
// [v, ...], one value, or base64("..."): as many as the type has elements.
Result<Tensor> ReadTensorValues(TokenReader& reader, const TensorType& type);
// Values up to the closing bracket, which is consumed.
Result<Tensor> ReadTensorList(TokenReader& reader, const TensorType& type, char close);
// ("...") after the word base64.
Result<Tensor> ReadTensorBase64(TokenReader& reader, const TensorType& type);

}  // namespace ridge
