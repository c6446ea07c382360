// yolov8n and its like: names are ours.  The weights of the distribution's mean are 0, 1, 2, ... in
// each file, so they are constants here.
#include "ridge/models/weights/names.h"

namespace ridge {

WeightNames YoloWeightNames() { return {.unused = {"*num_batches_tracked", "*dfl.conv.weight"}}; }

}  // namespace ridge
