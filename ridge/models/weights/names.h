// The tables of names, one function a family of public files.
#pragma once
#include "ridge/models/weights.h"

namespace ridge {

WeightNames PlainWeightNames();        // the model's own names are the public ones
WeightNames TorchvisionWeightNames();  // resnet18, resnet50, efficientnet_v2_s, mobilenet_v3_small
WeightNames VitWeightNames();          // timm; Hugging Face's ViT and DeiT
WeightNames BertWeightNames();         // Hugging Face
WeightNames GptWeightNames();          // Hugging Face's GPT-2

}  // namespace ridge
