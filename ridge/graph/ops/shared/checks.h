// Checks of one call's inputs and attributes that many operators share.
//
// Every function returns ok or an error that starts with call.where and names the input or
// attribute as the operator's documentation does.
#pragma once
#include "ridge/graph/op_def.h"

namespace ridge {

// The dtype of statistics and losses of x: f64 for f64, else f32, because sums and means kept in
// f16 or bf16 would lose what they measure.
inline DType StatisticDType(DType x) { return x == DType::kF64 ? DType::kF64 : DType::kF32; }

// Input i has a float dtype.
Status CheckFloat(const OpCall& call, size_t i, const char* name);

// The dtype of a result: the attribute `out_dtype`, any float type; empty means that of input 0.
Result<DType> FloatOutDType(const OpCall& call);
// The dtype of a product's result: the attribute `out_dtype`, where empty means that of input 0.
// It may be wider only ("f32" from bf16): sums of products lose nothing on the way out.  Also
// checks what the product says to mixed precision (graph/keep_f32.h).
Result<DType> ProductDType(const OpCall& call);
// The dtype that bias, input i of a product that gives `out`, has to have: `out`, or f32 where that
// is given and wider.
DType BiasDType(const OpCall& call, size_t i, DType out);

// Input i is i64 or i32.
Status CheckIndex(const OpCall& call, size_t i, const char* name);

// Input i has exactly this type.  `why` ends the message: "one number for each channel of x".
Status CheckType(const OpCall& call, size_t i, const char* name, const TensorType& type,
                 const char* why);

// The attribute is a list of `count` integers in [min, max].
Status CheckIntegers(const OpCall& call, const char* name, size_t count, int64_t min, int64_t max);

// The attribute is a list that could be the shape of a tensor.
Status CheckShape(const OpCall& call, const char* name);

// The attribute is 0 or 1.
Status CheckFlag(const OpCall& call, const char* name);

// The attribute is at least 0 and below `end`, so neither NaN nor infinite.
Status CheckNumber(const OpCall& call, const char* name, double end);

// The attribute `axis` as an index into the dimensions of input 0, or an error.
Result<int> CheckAxis(const OpCall& call, const char* name);

// The same for a call that passed its type check.
int CallAxis(const OpCall& call);

// The attributes of these names, to hand on to another node.
AttrMap PickAttrs(const AttrMap& attrs, std::initializer_list<const char*> names);

}  // namespace ridge
