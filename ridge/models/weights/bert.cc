// bert: Hugging Face's names are ours. Files from the first years call scale and shift of a layer
// norm gamma and beta, and files of the bare model have no "bert." in front.
#include "ridge/models/weights/names.h"

namespace ridge {

WeightNames BertWeightNames() {
  return {.prefix = "bert.",
          .rules = {{"bert.*LayerNorm.weight", {"bert.*LayerNorm.gamma"}},
                    {"bert.*LayerNorm.bias", {"bert.*LayerNorm.beta"}}},
          .unused = {"*embeddings.position_ids"}};
}

}  // namespace ridge
