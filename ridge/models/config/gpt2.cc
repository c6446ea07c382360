// gpt2: GPT-2 and what has its form.
#include "ridge/models/config/family.h"

namespace ridge {
namespace {

// The activation is one of two GELUs, the head is tied or not, and there are no more positions
// than the file has.
Status AdjustGpt2(ConfigFile& config, SpecArguments& arguments) {
  for (auto& [name, value] : arguments) {
    if (name != "gelu_tanh") continue;
    if (value != "gelu" && value != "gelu_tanh")
      return config.Unsupported("activation_function", "'gpt' has gelu and gelu_new");
    value = value == "gelu_tanh" ? "1" : "0";
  }
  const nlohmann::json* tied = config.Find("tie_word_embeddings");
  AddArgument(arguments, "tied", tied == nullptr || *tied == true);
  RIDGE_ASSIGN_OR_RETURN(const auto inner, config.Integer("n_inner"));
  AddArgument(arguments, "inner", inner.value_or(0));
  RIDGE_ASSIGN_OR_RETURN(const auto positions, config.Integer("n_positions"));
  const int64_t usual = 256;  // of gpt:context
  if (positions.value_or(usual) < usual) AddArgument(arguments, "context", *positions);
  return Status();
}

}  // namespace

ConfigFamily Gpt2ConfigFamily() {
  using enum KeyUse;
  return {.model_type = "gpt2",
          .model = "gpt",
          .rows = {{"vocab_size", kInteger, "vocab", "50257"},
                   {"n_embd", kInteger, "hidden", "768"},
                   {"n_layer", kInteger, "layers", "12"},
                   {"n_head", kInteger, "heads", "12"},
                   {"layer_norm_epsilon", kReal, "epsilon", "1e-5"},
                   {"activation_function", kActivation, "gelu_tanh", "\"gelu_new\""},
                   {"attn_pdrop", kDropout, "", "0.1"},
                   {"embd_pdrop", kDropout, "", "0.1"},
                   {"resid_pdrop", kDropout, "", "0.1"},
                   {"scale_attn_weights", kFixed, "true", "true"},
                   {"scale_attn_by_inverse_layer_idx", kFixed, "false", "false"},
                   {"add_cross_attention", kFixed, "false", "false"}},
          .ignored = {"n_ctx", "reorder_and_upcast_attn", "summary_*", "is_decoder"},
          .adjust = AdjustGpt2};
}

}  // namespace ridge
