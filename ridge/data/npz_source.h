// A user's arrays in an .npz file as a data set.
#pragma once
#include <string>

#include "ridge/data/source.h"

namespace ridge {

// Each array is a field; its first dimension counts the samples.  x_test or test_x is the field x
// of the test split, x_train, train_x or x that of the train split; other names likewise.
// Fails with kInvalidData: what ReadNpz refuses, no train arrays, or unequal first dimensions.
Result<DataSplits> OpenNpz(const std::string& name, const std::string& path);

}  // namespace ridge
