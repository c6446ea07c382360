#include "ridge/data/npz_source.h"

#include <string_view>
#include <utility>
#include <vector>

#include "ridge/data/memory_source.h"
#include "ridge/data/npz.h"

namespace ridge {
namespace {

// The array's name without the split's: "x_test" and "test_x" are ("x", true) for "test".
std::pair<std::string, bool> WithoutSplit(const std::string& name, std::string_view split) {
  const std::string ending = "_" + std::string(split);
  const std::string beginning = std::string(split) + "_";
  if (name.size() > ending.size() && name.ends_with(ending))
    return {name.substr(0, name.size() - ending.size()), true};
  if (name.size() > beginning.size() && name.starts_with(beginning))
    return {name.substr(beginning.size()), true};
  return {name, false};
}

}  // namespace

Result<DataSplits> OpenNpz(const std::string& name, const std::string& path) {
  RIDGE_ASSIGN_OR_RETURN(auto arrays, ReadNpz(path));
  std::vector<NamedTensor> train;
  std::vector<NamedTensor> test;
  for (auto& [array_name, tensor] : arrays) {
    const auto [test_name, is_test] = WithoutSplit(array_name, "test");
    if (is_test) {
      test.emplace_back(test_name, std::move(tensor));
    } else {
      train.emplace_back(WithoutSplit(array_name, "train").first, std::move(tensor));
    }
  }
  if (train.empty()) {
    return Status(ErrorCode::kInvalidData,
                  path +
                      ": holds no arrays to train on. hint: call them x and y, or x_train and "
                      "y_train");
  }
  DataSplits splits;
  RIDGE_ASSIGN_OR_RETURN(splits.train, MemorySource::Create(name, std::move(train)));
  if (test.empty()) return splits;
  RIDGE_ASSIGN_OR_RETURN(splits.test, MemorySource::Create(name, std::move(test)));
  return splits;
}

}  // namespace ridge
