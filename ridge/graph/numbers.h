// Numbers: values of a graph in f64, whatever their dtypes, as the references compute them.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ridge/graph/graph.h"

namespace ridge {

using Numbers = std::vector<double>;  // row-major
using NamedNumbers = std::map<std::string, Numbers>;

Numbers NumbersOf(const Tensor& tensor);

// Runs a node by its reference.  `at`: where the numbers of a value are; those of the outputs are
// overwritten.
void RunOnNumbers(const Graph& graph, const Node& node, const std::function<Numbers&(ValueId)>& at);

}  // namespace ridge
