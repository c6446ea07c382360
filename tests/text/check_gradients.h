// CheckGradients: the command `gradients` of a text case.
//
// The graph is written with extents as names: f64[<B>,<H*W>], dims=[<B>,<2*C>].  The header
// "# extents: B=2 C=3" says what they are; the graph is checked at every choice of each of them and
// 1, because an extent of 1 makes a view of what else moves data, and a copy of what broadcasts.
//
// At each choice the loss is the sum of all outputs, each times fixed random weights.
//   f64  the gradients of all float inputs and parameters are the slopes of central differences
//   f64  they stay the same with the rewrites before differentiation, with all passes after it,
//        and with each pass alone
//   f32  they are those of f64 to rounding, in the same ways: some rewrites are for f32 only
#pragma once
#include <string>

namespace ridge {

// "right at N choices of the extents" or the first thing that is wrong.
std::string CheckGradients(const std::string& graph_text, const std::string& extents);

}  // namespace ridge
