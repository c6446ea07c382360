// RowOf: the row of a model's table that bears the name of the model or variant.
#pragma once
#include <string>

#include "ridge/core/status.h"

namespace ridge {

template <typename Row, size_t N>
const Row& RowOf(const Row (&rows)[N], const std::string& name) {
  for (const Row& row : rows) {
    if (row.name == name) return row;
  }
  ThrowBug(__FILE__, __LINE__, "a row", name);
}

}  // namespace ridge
