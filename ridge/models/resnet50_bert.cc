// resnet50_bert: a picture and a text, one label.
//
// ResNet-50 of torchvision and BERT of Hugging Face transformers, the features of both one after
// the other, and a linear classifier (late fusion, as the baselines of Kiela et al., MMBT, 2019).
// Names are those of both libraries: both files in one are its weights.
#include "ridge/models/builtin.h"
#include "ridge/models/encoders.h"
#include "ridge/models/layers.h"
#include "ridge/models/weights/names.h"

namespace ridge {
namespace {

Result<Graph> Build(const ModelArguments& arguments, const ModelOptions& options) {
  RIDGE_RETURN_IF_ERROR(CheckBertSizes(arguments));
  GraphBuilder b(arguments.model());
  const int64_t size = arguments["image"];
  const Value picture = ResNetFeatures(b, ImageInput(b, options, {3, size, size}), "resnet50");
  const Value text = BertFeatures(b, arguments, options);
  const Value both = Concat({picture, text}, 1);
  ClassifierEnd(b, options,
                Linear(b, both, arguments["classes"], "classifier", {.deviation = 0.02}));
  return b.Build();
}

// Those of bert_base.
std::vector<ModelParameter> Parameters() {
  std::vector<ModelParameter> parameters = BertParameters();
  for (ModelParameter& parameter : parameters) {
    for (const auto& [name, value] : std::vector<std::pair<std::string, int64_t>>{
             {"vocab", 30522}, {"hidden", 768}, {"layers", 12}, {"heads", 12}}) {
      if (parameter.name == name) parameter.default_value = value;
    }
  }
  parameters.insert(parameters.begin(), {"image", "height and width of the picture", 224, 8, 4096});
  return parameters;
}

// BERT's names, also without its prefix, and torchvision's, without its head.
WeightNames Names() {
  WeightNames names = BertWeightNames();
  names.unused.insert(names.unused.end(), {"*num_batches_tracked", "fc.weight", "fc.bias"});
  return names;
}

}  // namespace

BuiltinModel ResNet50BertModel() {
  return {.name = "resnet50_bert",
          .doc = "ResNet-50 and BERT: a classifier of pictures with texts",
          .parameters = Parameters(),
          .build = Build,
          .weight_names = Names};
}

}  // namespace ridge
