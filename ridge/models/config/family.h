// ConfigFamily: what the keys of one model_type mean, as data; one file a family.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/models/config/config_file.h"

namespace ridge {

enum class KeyUse {
  kInteger,     // a parameter of our model
  kReal,        // likewise
  kActivation,  // the parameter has our name of it
  kFixed,       // our model has this value alone
  kDropout,     // a rate; we drop nothing, and tell
};

struct ConfigRow {
  const char* key;
  KeyUse use;
  const char* ours = "";  // the parameter; of kFixed the value as JSON
  const char* absent =
      nullptr;  // what a file without the key means, as JSON; nullptr: it must be there
};

// A model's arguments as its spec has them.
using SpecArguments = std::vector<std::pair<std::string, std::string>>;

struct ConfigFamily {
  std::string model_type;
  std::string model;  // of ours
  std::vector<ConfigRow> rows = {};
  std::vector<std::string> ignored = {};  // patterns of keys that change nothing
  // Patterns of our tensors that a file of the bare model lacks, and theirs: they are drawn.
  std::vector<std::pair<std::string, std::string>> head = {};
  // Patterns of tensors of the file that our model has no use for, such as heads of pretraining.
  std::vector<std::string> left_out = {};
  std::string classifier = {};  // the ending of architectures that have a head of classes; "": none
  // What rows can't say.
  Status (*adjust)(ConfigFile& config, SpecArguments& arguments) = nullptr;
};

// The family of a model_type, or nullptr; their model_types.
const ConfigFamily* FindConfigFamily(const std::string& model_type);
std::vector<std::string> ConfigFamilyNames();

ConfigFamily BertConfigFamily();
ConfigFamily Gpt2ConfigFamily();
ConfigFamily LlamaConfigFamily();
ConfigFamily VitConfigFamily();

// Adds NAME=VALUE.
void AddArgument(SpecArguments& arguments, const std::string& name, int64_t value);

// The arguments that the file says, those of rows first.  Fails with kInvalidModel and
// kUnsupported; the message names file, key and value.
Result<SpecArguments> ReadArguments(const ConfigFamily& family, ConfigFile& config,
                                    std::vector<std::string>& notes);

}  // namespace ridge
