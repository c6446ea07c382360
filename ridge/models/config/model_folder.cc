#include "ridge/models/config/model_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "ridge/core/glob.h"
#include "ridge/core/safetensors.h"
#include "ridge/data/text/open_tokenizer.h"
#include "ridge/graph/suggest.h"
#include "ridge/models/config/family.h"
#include "ridge/models/config/pooling.h"
#include "ridge/models/model.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

constexpr char kConfig[] = "config.json";

// "FOLDER:classes=7" in parts.
struct NamedModel {
  std::string folder, config;
  std::string arguments;      // "classes=7"
  bool architecture = false;  // the config.json was named
};

bool IsFile(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::optional<NamedModel> ReadName(const std::string& path, const std::string& arguments) {
  if (fs::path(path).filename() == kConfig && IsFile(path)) {
    const std::string folder = fs::path(path).parent_path().native();
    return NamedModel{folder.empty() ? "." : folder, path, arguments, true};
  }
  std::string folder = path;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  if (!folder.empty() && IsFile(folder + "/" + kConfig))
    return NamedModel{folder, folder + "/" + kConfig, arguments, false};
  return std::nullopt;
}

// A built-in model's name means that; ./NAME is a folder.
std::optional<NamedModel> ReadName(const std::string& model) {
  if (FindBuiltinModel(model.substr(0, model.find(':'))) != nullptr) return std::nullopt;
  if (auto whole = ReadName(model, "")) return whole;
  const size_t colon = model.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  return ReadName(model.substr(0, colon), model.substr(colon + 1));
}

Result<const ConfigFamily*> FamilyOf(ConfigFile& config) {
  RIDGE_ASSIGN_OR_RETURN(const std::optional<std::string> type, config.Text("model_type"));
  const ConfigFamily* family = type ? FindConfigFamily(*type) : nullptr;
  if (family != nullptr) return family;
  return config.Unsupported("model_type",
                            fmt::format("known are {}. hint: other models train from ONNX files",
                                        fmt::join(ConfigFamilyNames(), ", ")));
}

Result<std::string> OwnWeights(const std::string& folder) {
  const std::string file = folder + "/model.safetensors";
  if (IsFile(file)) return file;
  std::string found = "it holds none";
  if (IsFile(file + ".index.json"))
    found = "its weights lie in several files; one is read";
  else if (IsFile(folder + "/pytorch_model.bin"))
    found = "pytorch_model.bin is not read";
  return Status(ErrorCode::kInvalidData,
                fmt::format("{}: there is no model.safetensors: {}. hint: --weights FILE names "
                            "another file; {}/{} as the model starts at random",
                            folder, found, folder, kConfig));
}

class Opener {
 public:
  explicit Opener(NamedModel named) : named_(std::move(named)) {}

  Result<ModelFolder> Open(const std::string& weights) {
    RIDGE_ASSIGN_OR_RETURN(ConfigFile config, ConfigFile::Open(named_.config));
    RIDGE_ASSIGN_OR_RETURN(family_, FamilyOf(config));
    RIDGE_ASSIGN_OR_RETURN(arguments_, ReadArguments(*family_, config, found_.notes));
    RIDGE_RETURN_IF_ERROR(AddGiven());
    RIDGE_RETURN_IF_ERROR(AddPooling());
    found_.spec = Spec();
    found_.weights = weights;
    if (weights.empty() && !named_.architecture) {
      RIDGE_ASSIGN_OR_RETURN(found_.weights, OwnWeights(named_.folder));
    }
    if (!found_.weights.empty()) RIDGE_RETURN_IF_ERROR(FindSkips());
    if (HoldsTokenizer(named_.folder)) found_.tokenizer = named_.folder;
    return std::move(found_);
  }

 private:
  std::string* Argument(const std::string& name) {
    for (auto& [known, value] : arguments_) {
      if (known == name) return &value;
    }
    return nullptr;
  }

  // The user's replace those of the file.
  Status AddGiven() {
    if (named_.arguments.empty()) return Status();
    RIDGE_ASSIGN_OR_RETURN(const ModelSpec given,
                           ParseModelSpec(family_->model + ":" + named_.arguments));
    for (const auto& [name, value] : given.arguments) {
      if (std::string* known = Argument(name)) {
        *known = value;
      } else {
        arguments_.emplace_back(name, value);
      }
    }
    return Status();
  }

  bool Takes(const std::string& name) const {
    const auto parameters = ParametersOf(family_->model);
    return std::any_of(parameters.begin(), parameters.end(),
                       [&](const ModelParameter& p) { return p.name == name; });
  }

  Status AddPooling() {
    if (!Takes("pooling") || Argument("pooling") != nullptr) return Status();
    RIDGE_ASSIGN_OR_RETURN(const auto pooling, FindPooling(named_.folder, found_.notes));
    if (pooling) arguments_.emplace_back("pooling", *pooling);
    return Status();
  }

  // Without what is the model's default, but for sizes that the data would say otherwise.
  std::string Spec() const {
    const std::vector<ModelParameter> parameters = ParametersOf(family_->model);
    std::string text;
    for (const auto& [name, value] : arguments_) {
      const bool usual = std::any_of(parameters.begin(), parameters.end(),
                                     [&name = name, &value = value](const ModelParameter& p) {
                                       return p.name == name && DefaultText(p) == value;
                                     });
      if (usual && name != "vocab" && name != "classes") continue;
      text += fmt::format("{}{}={}", text.empty() ? ":" : ",", name, value);
    }
    return family_->model + text;
  }

  // Whether the pattern, maybe without the prefix of the family's names, fits a tensor.
  bool InFile(const SafetensorsFile& file, const std::string& pattern) const {
    const std::string prefix = FindBuiltinModel(family_->model)->weight_names().prefix;
    const bool cut = !prefix.empty() && pattern.starts_with(prefix);
    const std::string bare = cut ? pattern.substr(prefix.size()) : pattern;
    return std::any_of(file.entries().begin(), file.entries().end(), [&](const auto& entry) {
      return MatchesPattern(entry.name, pattern) || MatchesPattern(entry.name, bare);
    });
  }

  // Tensors of ours that a file of the bare model lacks, and of the file that we have no use for.
  Status FindSkips() {
    RIDGE_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(found_.weights));
    RIDGE_ASSIGN_OR_RETURN(const Graph graph, BuildModel(found_.spec, {.batch = 1}));
    const auto is_ours = [&](const std::string& pattern) {
      return std::any_of(graph.values().begin(), graph.values().end(), [&](const ValueInfo& info) {
        return info.kind == ValueKind::kParameter && MatchesPattern(info.name, pattern);
      });
    };
    for (const auto& [ours, theirs] : family_->head) {
      if (is_ours(ours) && !InFile(file, theirs)) found_.weights_skip.push_back(ours);
    }
    for (const std::string& pattern : family_->left_out) {
      if (!is_ours(pattern) && InFile(file, pattern)) found_.weights_skip.push_back(pattern);
    }
    return Status();
  }

  NamedModel named_;
  const ConfigFamily* family_ = nullptr;
  SpecArguments arguments_;
  ModelFolder found_;
};

}  // namespace

bool IsModelFolder(const std::string& model) { return ReadName(model).has_value(); }

Result<ModelFolder> OpenModelFolder(const std::string& model, const std::string& weights) {
  const std::optional<NamedModel> named = ReadName(model);
  if (!named)
    return Status(ErrorCode::kInvalidModel, fmt::format("{}: holds no {}", model, kConfig));
  return Opener(*named).Open(weights);
}

}  // namespace ridge
