// A backend whose kernels give the interpreter's bits and ask for all that a planner may be asked.
//
// Operators are the reference's.  Half of them are slow row-major and fast in layouts of their
// own (elements backwards or turned, zeros behind them); optimizers take the layouts at hand; every
// result may be written over every operand of the same size; workspaces are filled with ones, so
// whatever else lies there is lost.
#pragma once
#include <memory>

#include "ridge/backend/backend.h"

namespace ridge::crossing {

std::unique_ptr<Backend> MakeHostileBackend();

}  // namespace ridge::crossing
