// Attr: a constant argument of a node.  Integers stand for booleans too.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "ridge/core/tensor.h"

namespace ridge {

class Graph;

using Attr = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                          Tensor, std::shared_ptr<const Graph>>;

// In order of name, so that text and plans are deterministic.
using AttrMap = std::map<std::string, Attr>;

// "an integer", "a list of integers", ... for messages.
const char* AttrKindName(const Attr& attr);

bool SameAttr(const Attr& a, const Attr& b);  // tensors by their bits, subgraphs by their text
bool SameAttrs(const AttrMap& a, const AttrMap& b);

}  // namespace ridge
