// llama: Llama 1 and 2, TinyLlama, and Llama 3 without scaled positions.
#include <fmt/format.h>

#include <cmath>

#include "ridge/models/config/family.h"

namespace ridge {
namespace {

// The base of the rotary angles stands alone or, in newer files, among their parameters.
Status AddRotary(ConfigFile& config, SpecArguments& arguments) {
  RIDGE_ASSIGN_OR_RETURN(std::optional<double> theta, config.Real("rope_theta"));
  if (const nlohmann::json* rope = config.Find("rope_parameters")) {
    for (const auto& [key, value] : rope->items()) {
      if (key == "rope_theta" && value.is_number()) {
        theta = value.get<double>();
      } else if (key != "rope_type" || value != "default") {
        return config.Unsupported("rope_parameters", "'llama' has rope_type default alone");
      }
    }
  }
  const double base = theta.value_or(10000);
  if (!(base >= 1 && base <= 1e9) || base != std::floor(base))
    return config.Unsupported("rope_theta", "'llama' takes a whole number from 1");
  AddArgument(arguments, "rope_theta", static_cast<int64_t>(base));
  return Status();
}

Status CheckHead(ConfigFile& config) {
  RIDGE_ASSIGN_OR_RETURN(const auto head, config.Integer("head_dim"));
  RIDGE_ASSIGN_OR_RETURN(const auto width, config.Integer("hidden_size"));
  RIDGE_ASSIGN_OR_RETURN(const auto heads, config.Integer("num_attention_heads"));
  const int64_t by = heads.value_or(0), whole = width.value_or(0);
  if (!head || (by > 0 && whole % by == 0 && *head == whole / by)) return Status();
  return config.Unsupported("head_dim", "'llama' has hidden_size / num_attention_heads");
}

Status AdjustLlama(ConfigFile& config, SpecArguments& arguments) {
  RIDGE_RETURN_IF_ERROR(AddRotary(config, arguments));
  RIDGE_RETURN_IF_ERROR(CheckHead(config));
  RIDGE_ASSIGN_OR_RETURN(auto heads, config.Integer("num_key_value_heads"));
  if (!heads) {
    RIDGE_ASSIGN_OR_RETURN(heads, config.Integer("num_attention_heads"));
  }
  AddArgument(arguments, "kv_heads", heads.value_or(32));
  const nlohmann::json* tied = config.Find("tie_word_embeddings");
  AddArgument(arguments, "tied", tied != nullptr && *tied == true);
  return Status();
}

}  // namespace

ConfigFamily LlamaConfigFamily() {
  using enum KeyUse;
  return {.model_type = "llama",
          .model = "llama",
          .rows = {{"vocab_size", kInteger, "vocab", "32000"},
                   {"hidden_size", kInteger, "hidden", "4096"},
                   {"num_hidden_layers", kInteger, "layers", "32"},
                   {"num_attention_heads", kInteger, "heads", "32"},
                   {"intermediate_size", kInteger, "inner", "11008"},
                   {"rms_norm_eps", kReal, "epsilon", "1e-6"},
                   {"hidden_act", kFixed, "\"silu\"", "\"silu\""},
                   {"rope_scaling", kFixed, "null", "null"},
                   {"attention_bias", kFixed, "false", "false"},
                   {"mlp_bias", kFixed, "false", "false"},
                   {"attention_dropout", kDropout, "", "0"}},
          .ignored = {"max_position_embeddings", "pretraining_tp", "is_decoder"},
          .adjust = AdjustLlama};
}

}  // namespace ridge
