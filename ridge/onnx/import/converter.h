// The table of ONNX converters: which operators import knows.
//
// A family is a file in converters/ with one table, in order of name.  A pointwise operator whose
// record names one of ONNX (OpDef::onnx) needs no entry: inputs and attributes are the same.
#pragma once
#include <span>
#include <string_view>

#include "ridge/onnx/import/node.h"

namespace ridge {

class OnnxConverter {
 public:
  using OfOne = Result<Value>(OnnxNode&);  // returns output 0
  using OfSeveral = Status(OnnxNode&);     // sets its outputs

  // `inputs`: how many the operator always has; the converter need not look.
  constexpr OnnxConverter(const char* domain, const char* op_type, OfOne* of_one, size_t inputs = 0)
      : domain(domain), op_type(op_type), of_one_(of_one), inputs_(inputs) {}
  constexpr OnnxConverter(const char* domain, const char* op_type, OfSeveral* of_several,
                          size_t inputs = 0)
      : domain(domain), op_type(op_type), of_several_(of_several), inputs_(inputs) {}

  Status Convert(OnnxNode& node) const;

  const char* domain;   // "" is ai.onnx
  const char* op_type;  // "Conv"

 private:
  Status Run(OnnxNode& node) const;

  OfOne* of_one_ = nullptr;
  OfSeveral* of_several_ = nullptr;
  size_t inputs_;
};

#define RIDGE_ONNX_FAMILY(Name) std::span<const OnnxConverter> Onnx##Name##Converters();
#include "ridge/onnx/import/converters/families.def"
#undef RIDGE_ONNX_FAMILY

// nullptr when there is none.
const OnnxConverter* FindOnnxConverter(std::string_view domain, std::string_view op_type);

// All of them, in order of domain and operator: for tables and messages.
std::vector<const OnnxConverter*> AllOnnxConverters();

}  // namespace ridge
