// The laws that every drawn graph keeps.
//
//   differences  `ridge grad`'s gradients are the slopes of the loss, in f64
//   passes       the same after all passes, without one of them, and with one alone (bit by bit
//                where passes.h promises it)
//   training     the same by `ridge train`'s step, with rewrites before differentiation
//   precision    the same in f32, bf16 and f16 within what rounding may do, by the references and
//                as planned for the CPU
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ridge/train/options/machine.h"
#include "tests/generate/leaves.h"

namespace ridge {

struct Laws {
  bool differences = true, passes = true, training = true, precision = true;
};

// "gradients" is all of them.
std::optional<Laws> ParseLaws(const std::string& text);

struct Finding {
  std::string law;   // "passes -fuse": what was broken, the same words for the same cause
  std::string text;  // the numbers
};

struct GraphJudgement {
  std::optional<Finding> finding;
  bool kink = false;        // the differences said nothing
  std::string not_checked;  // why a law was left out; empty mostly
};

// What varies beside the graph (which pass is left out, the dtype) follows from `seed`.
// `machine` has the CPU backend.
GraphJudgement Judge(const Graph& forward, uint64_t seed, const Laws& laws, const Machine& machine);

}  // namespace ridge
