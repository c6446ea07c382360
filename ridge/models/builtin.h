// One function a built-in model; model.cc lists them.
#pragma once
#include "ridge/models/model.h"

namespace ridge {

BuiltinModel MlpModel();
BuiltinModel CnnModel();
BuiltinModel ResNet18Model();
BuiltinModel ResNet50Model();
BuiltinModel UnetModel();
BuiltinModel GptModel();
BuiltinModel BertModel();
BuiltinModel VitTiModel();
BuiltinModel EfficientNetV2SModel();
BuiltinModel MobileNetV3SmallModel();
BuiltinModel LstmModel();
BuiltinModel ConvNextTinyModel();
BuiltinModel LlamaModel();
BuiltinModel WhisperModel();
BuiltinModel SamModel();
BuiltinModel ResNet50BertModel();
BuiltinModel YoloV8Model();
BuiltinModel PointNet2Model();
BuiltinModel ConformerModel();

}  // namespace ridge
