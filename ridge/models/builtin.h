// One function a built-in model; model.cc lists them.
#pragma once
#include "ridge/models/model.h"

namespace ridge {

BuiltinModel MlpModel();
BuiltinModel CnnModel();
BuiltinModel ResNet18Model();

}  // namespace ridge
