// bert: BERT and what has its form (MiniLM, BGE, E5, GTE of the first generation).
#include "ridge/models/config/family.h"

namespace ridge {

ConfigFamily BertConfigFamily() {
  using enum KeyUse;
  return {.model_type = "bert",
          .model = "bert",
          .rows = {{"vocab_size", kInteger, "vocab", "30522"},
                   {"hidden_size", kInteger, "hidden", "768"},
                   {"num_hidden_layers", kInteger, "layers", "12"},
                   {"num_attention_heads", kInteger, "heads", "12"},
                   {"intermediate_size", kInteger, "inner", "3072"},
                   {"max_position_embeddings", kInteger, "positions", "512"},
                   {"type_vocab_size", kInteger, "types", "2"},
                   {"layer_norm_eps", kReal, "epsilon", "1e-12"},
                   {"hidden_act", kActivation, "activation", "\"gelu\""},
                   {"hidden_dropout_prob", kDropout, "", "0.1"},
                   {"attention_probs_dropout_prob", kDropout, "", "0.1"},
                   {"classifier_dropout", kDropout, "", "0"},
                   {"position_embedding_type", kFixed, "\"absolute\"", "\"absolute\""},
                   {"is_decoder", kFixed, "false", "false"},
                   {"add_cross_attention", kFixed, "false", "false"}},
          .head = {{"classifier.*", "classifier.*"}, {"bert.pooler.*", "bert.pooler.*"}},
          .left_out = {"cls.*", "*pooler.*", "qa_outputs.*"},
          .classifier = "ForSequenceClassification"};
}

}  // namespace ridge
