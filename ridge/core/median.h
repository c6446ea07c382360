// Medians and quantiles of measurements.
#pragma once
#include <vector>

namespace ridge {

// Of an even count the mean of the middle two.  REQUIRES: values is not empty.
double Median(std::vector<double> values);

// The value at this share of the sorted values, 0 to 1; between two the smaller.
// REQUIRES: values is not empty.
double LowerQuantile(std::vector<double> values, double share);

}  // namespace ridge
