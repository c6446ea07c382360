// llama: Hugging Face's names are ours; old files hold the rotary frequencies too, and files of
// small models leave out a head that is the embedding.
#include "ridge/models/weights/names.h"

namespace ridge {

WeightNames LlamaWeightNames() {
  return {.prefix = "model.",
          .rules = {{"lm_head.weight", {"model.embed_tokens.weight"}}},
          .unused = {"*.rotary_emb.inv_freq", "lm_head.weight"}};
}

}  // namespace ridge
