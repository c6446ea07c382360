// whisper: Hugging Face's names are ours. The encoder's positions are a constant, the head is the
// embedding, and positions beyond our context are left out.
#include "ridge/models/weights/names.h"

namespace ridge {

WeightNames WhisperWeightNames() {
  const std::string positions = "model.decoder.embed_positions.weight";
  return {.prefix = "model.",
          .rules = {{positions, {positions}, WeightForm::kFirstRows}},
          .unused = {"model.encoder.embed_positions.weight", "proj_out.weight"}};
}

}  // namespace ridge
