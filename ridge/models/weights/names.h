// The tables of names, one function a family of public files.
#pragma once
#include "ridge/models/weights.h"

namespace ridge {

WeightNames PlainWeightNames();        // the model's own names are the public ones
WeightNames TorchvisionWeightNames();  // resnet, efficientnet, mobilenet, convnext
WeightNames VitWeightNames();          // timm; Hugging Face's ViT and DeiT
WeightNames BertWeightNames();         // Hugging Face
WeightNames GptWeightNames();          // Hugging Face's GPT-2
WeightNames LlamaWeightNames();        // Hugging Face's Llama
WeightNames WhisperWeightNames();      // Hugging Face's Whisper
WeightNames SamWeightNames();          // Segment Anything's image encoder; timm; Hugging Face
WeightNames YoloWeightNames();         // Ultralytics

}  // namespace ridge
