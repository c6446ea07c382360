// torchvision, and timm's resnet18 and resnet50: names and shapes are ours.
#include "ridge/models/weights/names.h"

namespace ridge {

WeightNames PlainWeightNames() { return {}; }

// PyTorch counts the batches that a batch norm has seen; with a fixed momentum nothing reads that.
WeightNames TorchvisionWeightNames() { return {.unused = {"*num_batches_tracked"}}; }

}  // namespace ridge
