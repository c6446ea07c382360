// SpecOptions: the `key=value` behind the path of a data spec: "table.csv,delimiter=tab,drop=id".
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

struct SpecOptions {
  std::string path;
  std::vector<std::pair<std::string, std::string>> options;  // in the order given
};

// Takes `,key=value` off the end of `text` as long as there is one.  A path may hold commas: what
// stands before a comma is the path as soon as a file or folder of that name exists, and a part
// that is not key=value (a key is of the letters a-z and -) belongs to the path.
SpecOptions SplitSpecOptions(const std::string& text);

// Fails with kInvalidArgument unless every key is one of `known`.
Status CheckSpecKeys(const std::string& spec, const SpecOptions& options,
                     const std::vector<std::string>& known);

}  // namespace ridge
