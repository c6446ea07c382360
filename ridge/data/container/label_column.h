// LabelColumn: the labels of samples as texts, each text once.
//
// Integers are class numbers; where one text is none, all are names of classes, in the order of
// their bytes.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

class LabelColumn {
 public:
  // Fails with kInvalidData for an empty text and above 2^20 different ones; the bare reason.
  Status Add(const std::string& text);

  struct Labels {
    std::vector<int64_t> values;
    std::vector<std::string> names;  // of the classes; empty: the labels are numbers
  };
  // `known`: the classes, when they were found before.  Fails with kInvalidData for a label that is
  // none of them.
  Result<Labels> Finish(const std::vector<std::string>& known);

 private:
  Result<std::vector<int64_t>> Numbers(const std::vector<std::string>& names) const;

  std::map<std::string, int64_t> ids_;  // in the order in which they came
  std::vector<int64_t> values_;         // an id a sample
};

}  // namespace ridge
