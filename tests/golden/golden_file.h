// tests/golden/<model>.json: what PyTorch computed, and the comparison with it.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/core/tensor.h"

namespace ridge {

// A tensor without most of its elements.
struct GoldenTensor {
  Dims dims;
  double norm = 0;             // L2
  double sum = 0;              // of all elements
  double largest = 0;          // absolute value
  std::vector<double> values;  // at CounterPositions(elements, values.size())
};

struct GoldenFile {
  std::string model;  // spec
  int64_t batch = 0;
  double lr = 0;
  double momentum = 0;
  std::vector<double> losses;                      // before each step
  std::map<std::string, GoldenTensor> gradients;   // of the first step
  std::map<std::string, GoldenTensor> statistics;  // after the last step
};

// $RIDGE_SOURCE_DIR/tests/golden/NAME.json (default: the working folder).
Result<GoldenFile> ReadGoldenFile(const std::string& name);

// How far a tensor is from the golden one.
struct GoldenDifference {
  Dims dims;
  double value = 0;      // largest difference at the stored positions, of the largest element
  int64_t position = 0;  // where that is: a row-major index
  double ours = 0, golden = 0;  // the two values there
  double norm = 0;              // difference of the norms, of the golden norm
  // Difference of the sums, of sqrt(elements) * norm, which bounds the sum of absolute values: a
  // relative error of e in every element can't make this more than e.
  double sum = 0;

  double Largest() const;        // a NaN anywhere is infinite
  std::string ToString() const;  // "4.1e-05 of the largest element at [3,0,1,2] ..."
};
// REQUIRES: type.dims == golden.dims.
GoldenDifference CompareWithGolden(const GoldenTensor& golden, const TensorType& type,
                                   const void* data);

}  // namespace ridge
