// What rounding may do to what a graph computes.
//
// Each result of a node is moved at random by as much as a kernel may be off there: half a unit in
// the last place where it is stored, and for sums as much again for the terms' magnitudes.  The
// spread of the outputs over a few such runs, times a factor, bounds the error of a real one: to
// first order both are sums of the same terms (sensitivity times local error), the real ones of
// unknown signs.  Such a sum exceeds its standard deviation k times with a probability below
// 2 exp(-k^2 / 2) (Higham and Mary, "A new approach to probabilistic rounding error analysis",
// 2019), and the bound scales with the unit roundoff, the number of terms and their magnitudes by
// construction.  Where a value lies within rounding of a kink, moved runs land on both sides, and
// the bound covers the jump.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "tests/generate/leaves.h"

namespace ridge {

// Gives elements of its inputs as they are, and whole numbers: rounds nothing.  Gradients ask which
// input a result equals.
bool IsExact(const OpDef& op);

// Unit roundoffs: of stored results, and of the sums behind them; and half the smallest number.
struct Roundoff {
  double store = 0, compute = 0, least = 0;
};

Roundoff RoundoffOf(DType dtype);

class RoundingModel {
 public:
  // `graph` in f64, on these leaves.
  static Result<RoundingModel> Make(const Graph& graph, const NamedTensors& leaves);

  // Outputs without rounding, by name.
  const NamedTensors& exact() const { return exact_; }
  // Bounds for the difference between exact() and a run with this roundoff, by output; the same
  // for all elements.  `samples` runs.
  std::map<std::string, double> Bounds(Roundoff roundoff, int samples) const;

 private:
  bool OfConstants(const Node& node) const;
  // `thorough`: with the magnitudes of its own terms.
  std::vector<Tensor> Sample(Roundoff roundoff, uint64_t seed, bool thorough) const;

  Graph graph_;
  std::vector<Tensor> values_;      // by ValueId
  std::vector<Tensor> magnitudes_;  // by ValueId: what `compute` is relative to; may be empty
  NamedTensors exact_;
};

// Says which of `got` is farther from model.exact() than its bound; empty when none is.  With
// `stepped` they are differences of numbers up to 1, divided by kTrainRate.
std::string FirstOutside(const RoundingModel& model, Roundoff roundoff, int samples,
                         const NamedTensors& got, bool stepped);

}  // namespace ridge
