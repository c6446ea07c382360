// The `epilogue` attribute of matmul and conv as oneDNN post-operations.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/backend/cpu/onednn.h"

namespace ridge::cpu {

// Steps of "relu,add": their names in order.
std::vector<std::string> EpilogueSteps(const OpCall& call);

// Whether products take these steps.
bool TakesEpilogue(const OpCall& call);

// The attribute with all steps; `extra` describes the second operand of `add` (type and dimensions
// of the output, layout chosen by the primitive).  nullopt when oneDNN lacks a step.
std::optional<dnnl::primitive_attr> EpilogueAttr(const OpCall& call,
                                                 const dnnl::memory::desc& extra);

// Binds the inputs from `first_extra` on to the `add` steps, in the layout of the output.
void BindEpilogue(const OpCall& call, int first_extra, const dnnl::memory::desc& row_major,
                  const dnnl::memory::desc& output, PrimitivePlan& plan);

}  // namespace ridge::cpu
