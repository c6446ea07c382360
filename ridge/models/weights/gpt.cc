// gpt: GPT-2 as Hugging Face stores it.
//
// Its products are Conv1D: the matrix is [in,out] and ours [out,in].  Its head is the embedding,
// which files then hold once; unless gpt:tied=1 the two start equal and are trained apart.
// Positions beyond our context are left out.  GPT-2's GELU is the tanh approximation:
// gpt:gelu_tanh=1.
#include "ridge/models/weights/names.h"

namespace ridge {

WeightNames GptWeightNames() {
  const std::string layer = "transformer.h.*";
  WeightNames names;
  names.prefix = "transformer.";
  names.rules = {
      {"tok.weight", {"transformer.wte.weight"}},
      {"pos.weight", {"transformer.wpe.weight"}, WeightForm::kFirstRows},
      {"lnf.*", {"transformer.ln_f.*"}},
      {"head.weight", {"lm_head.weight"}},
      {"head.weight", {"transformer.wte.weight"}},
      {"blocks.*.ln1.weight", {layer + ".ln_1.weight"}},
      {"blocks.*.ln1.bias", {layer + ".ln_1.bias"}},
      {"blocks.*.ln2.weight", {layer + ".ln_2.weight"}},
      {"blocks.*.ln2.bias", {layer + ".ln_2.bias"}},
  };
  for (const auto& [ours, theirs] : {std::pair{".qkv", ".attn.c_attn"},
                                     {".proj", ".attn.c_proj"},
                                     {".up", ".mlp.c_fc"},
                                     {".down", ".mlp.c_proj"}}) {
    const std::string from = layer + theirs;
    names.rules.push_back(
        {std::string("blocks.*") + ours + ".weight", {from + ".weight"}, WeightForm::kTransposed});
    names.rules.push_back({std::string("blocks.*") + ours + ".bias", {from + ".bias"}});
  }
  // The causal mask, and the head where it is the embedding.
  names.unused = {"*.attn.bias", "*.attn.masked_bias", "lm_head.weight"};
  return names;
}

}  // namespace ridge
