#include "ridge/models/config/family.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace ridge {
namespace {

const std::vector<ConfigFamily>& Families() {
  static const std::vector<ConfigFamily> kFamilies = {BertConfigFamily(), Gpt2ConfigFamily(),
                                                      LlamaConfigFamily(), VitConfigFamily()};
  return kFamilies;
}

// Keys of all families: names of things, how files are kept, how text is generated.
constexpr const char* kIgnored[] = {"_*",
                                    "architectures",
                                    "model_type",
                                    "transformers_version",
                                    "torch_dtype",
                                    "dtype",
                                    "use_cache",
                                    "gradient_checkpointing",
                                    "*_token_id",
                                    "tokenizer_class",
                                    "finetuning_task",
                                    "task_specific_params",
                                    "return_dict*",
                                    "output_*",
                                    "torchscript",
                                    "use_bfloat16",
                                    "id2label",
                                    "label2id",
                                    "num_labels",
                                    "chunk_size_feed_forward",
                                    "max_length",
                                    "min_length",
                                    "do_sample",
                                    "early_stopping",
                                    "num_beam*",
                                    "num_return_*",
                                    "diversity_penalty",
                                    "temperature",
                                    "top_k",
                                    "top_p",
                                    "typical_p",
                                    "repetition_penalty",
                                    "length_*",
                                    "no_repeat_*",
                                    "encoder_no_*",
                                    "bad_words_ids",
                                    "prefix",
                                    "remove_invalid_*",
                                    "exponential_decay_*",
                                    "suppress_tokens",
                                    "begin_*",
                                    "forced_*",
                                    "tf_legacy_loss",
                                    "initializer_range",
                                    "is_composition",
                                    "cross_attention_hidden_size",
                                    "tie_encoder_decoder",
                                    "tie_word_embeddings",
                                    "sep_token"};

// Keys that must not change what is computed.
constexpr ConfigRow kCommonRows[] = {{"is_encoder_decoder", KeyUse::kFixed, "false", "false"},
                                     {"pruned_heads", KeyUse::kFixed, "{}", "{}"},
                                     {"quantization_config", KeyUse::kFixed, "null", "null"}};

// transformers' names of activations.
const std::map<std::string, std::string>& Activations() {
  static const std::map<std::string, std::string> kNames = {
      {"gelu", "gelu"},           {"gelu_python", "gelu"}, {"gelu_new", "gelu_tanh"},
      {"gelu_fast", "gelu_tanh"}, {"relu", "relu"},        {"gelu_pytorch_tanh", "gelu_tanh"},
      {"silu", "silu"},           {"swish", "silu"}};
  return kNames;
}

Result<std::string> ReadActivation(const ConfigRow& row, ConfigFile& config,
                                   const std::string& absent) {
  RIDGE_ASSIGN_OR_RETURN(const std::optional<std::string> given, config.Text(row.key));
  const auto found = Activations().find(given.value_or(absent));
  if (found != Activations().end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [name, ours] : Activations()) names.push_back(name);
  return config.Unsupported(row.key, fmt::format("known are {}", fmt::join(names, ", ")));
}

class RowReader {
 public:
  RowReader(const ConfigFamily& family, ConfigFile& config, std::vector<std::string>& notes)
      : family_(family), config_(config), notes_(notes) {}

  Status Read(const ConfigRow& row, SpecArguments& arguments) {
    const bool there = config_.Find(row.key) != nullptr;
    if (!there && row.absent == nullptr)
      return config_.Unsupported(row.key, "a model of this type must say it");
    const auto usual = nlohmann::json::parse(row.absent == nullptr ? "null" : row.absent);
    switch (row.use) {
      case KeyUse::kInteger: {
        RIDGE_ASSIGN_OR_RETURN(const auto value, config_.Integer(row.key));
        AddArgument(arguments, row.ours, value ? *value : usual.get<int64_t>());
        return Status();
      }
      case KeyUse::kReal: {
        RIDGE_ASSIGN_OR_RETURN(const auto value, config_.Real(row.key));
        arguments.emplace_back(row.ours, fmt::format("{}", value ? *value : usual.get<double>()));
        return Status();
      }
      case KeyUse::kActivation: {
        RIDGE_ASSIGN_OR_RETURN(
            std::string name,
            ReadActivation(row, config_, usual.is_string() ? usual.get<std::string>() : ""));
        arguments.emplace_back(row.ours, std::move(name));
        return Status();
      }
      case KeyUse::kFixed:
        return CheckFixed(row);
      case KeyUse::kDropout:
        return TakeDropout(row);
    }
    return Status();
  }

 private:
  Status CheckFixed(const ConfigRow& row) {
    const nlohmann::json* value = config_.Find(row.key);
    if (value == nullptr || *value == nlohmann::json::parse(row.ours)) return Status();
    return config_.Unsupported(row.key, fmt::format("'{}' has {} alone", family_.model, row.ours));
  }

  Status TakeDropout(const ConfigRow& row) {
    RIDGE_ASSIGN_OR_RETURN(const std::optional<double> rate, config_.Real(row.key));
    if (rate.value_or(0) > 0) {
      notes_.push_back(fmt::format("{}: {} is {}; '{}' trains without dropout", config_.path(),
                                   row.key, *rate, family_.model));
    }
    return Status();
  }

  const ConfigFamily& family_;
  ConfigFile& config_;
  std::vector<std::string>& notes_;
};

// The classes of the file's own head.
Status AddClasses(const ConfigFamily& family, ConfigFile& config, SpecArguments& arguments) {
  const nlohmann::json* architectures = config.Find("architectures");
  const auto is_classifier = [&](const nlohmann::json& name) {
    return name.is_string() && name.get<std::string>().ends_with(family.classifier);
  };
  if (family.classifier.empty() || architectures == nullptr || !architectures->is_array() ||
      std::none_of(architectures->begin(), architectures->end(), is_classifier))
    return Status();
  RIDGE_ASSIGN_OR_RETURN(const auto type, config.Text("problem_type"));
  if (type && *type != "single_label_classification")
    return config.Unsupported("problem_type", "the head is trained for one class a sample");
  RIDGE_ASSIGN_OR_RETURN(const auto count, config.Integer("num_labels"));
  const nlohmann::json* names = config.Find("id2label");
  const auto classes = count ? *count
                       : names != nullptr && names->is_object()
                           ? static_cast<int64_t>(names->size())
                           : 2;
  AddArgument(arguments, "classes", classes);
  return Status();
}

}  // namespace

void AddArgument(SpecArguments& arguments, const std::string& name, int64_t value) {
  arguments.emplace_back(name, fmt::format("{}", value));
}

const ConfigFamily* FindConfigFamily(const std::string& model_type) {
  for (const ConfigFamily& family : Families()) {
    if (family.model_type == model_type) return &family;
  }
  return nullptr;
}

std::vector<std::string> ConfigFamilyNames() {
  std::vector<std::string> names;
  for (const ConfigFamily& family : Families()) names.push_back(family.model_type);
  return names;
}

Result<SpecArguments> ReadArguments(const ConfigFamily& family, ConfigFile& config,
                                    std::vector<std::string>& notes) {
  SpecArguments arguments;
  RowReader reader(family, config, notes);
  for (const ConfigRow& row : family.rows) RIDGE_RETURN_IF_ERROR(reader.Read(row, arguments));
  for (const ConfigRow& row : kCommonRows) RIDGE_RETURN_IF_ERROR(reader.Read(row, arguments));
  RIDGE_RETURN_IF_ERROR(AddClasses(family, config, arguments));
  if (family.adjust != nullptr) RIDGE_RETURN_IF_ERROR(family.adjust(config, arguments));
  config.Find("problem_type");
  for (const char* pattern : kIgnored) config.Ignore(pattern);
  for (const std::string& pattern : family.ignored) config.Ignore(pattern);
  RIDGE_RETURN_IF_ERROR(config.CheckAllKnown(family.model));
  return arguments;
}

}  // namespace ridge
