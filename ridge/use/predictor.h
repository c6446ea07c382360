// Predictor: a trained model that answers for samples as a source has them.
//
// The samples go through the loader of training and evaluation (BatchLoader), so they become the
// model's inputs by the same conversions; the last batch is padded.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ridge/runtime/executor.h"
#include "ridge/train/options/machine.h"
#include "ridge/train/options/options.h"
#include "ridge/train/store/run.h"
#include "ridge/use/signature.h"
#include "ridge/use/unpacked_tokenizer.h"

namespace ridge {

struct PredictorRequest {
  std::string model;                  // a run folder, or an ONNX file with a signature
  std::string checkpoint = "newest";  // of a run
  std::optional<int64_t> batch = {};  // samples a time; the run's, at most as many as there are
};

class Predictor {
 public:
  // Fails with kInvalidModel for a file without a signature, or with a damaged one; with
  // kUnsupported when the model does not give one answer a sample (FindSignature).
  static Result<Predictor> Open(const PredictorRequest& request, const Machine& machine);

  const Signature& signature() const { return signature_; }
  const std::vector<Field>& inputs() const { return inputs_; }  // of a sample
  int64_t outputs() const { return outputs_; }                  // numbers of an answer
  const Dims& output_dims() const { return output_dims_; }      // of an answer
  int64_t step() const { return step_; }                        // of the checkpoint; 0 of a file
  int64_t batch() const { return batch_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Plans for `samples` in all, and loads the weights.  Before Run.
  Status Prepare(int64_t samples);

  // The output of each sample, in order.
  using Take = std::function<Status(int64_t index, const std::vector<double>& output)>;
  Status Run(const SourcePtr& source, const Take& take);

 private:
  Predictor(PredictorRequest request, const Machine& machine)
      : request_(std::move(request)), machine_(&machine) {}
  Status OpenRun();
  Status OpenFile();
  Status Describe(const Graph& graph);
  Result<Graph> LoadAt(int64_t batch) const;
  Result<Graph> LoadSmallest(int64_t samples);
  Status LoadWeights();

  PredictorRequest request_;
  const Machine* machine_;
  std::optional<ridge::Run> run_;  // none: a file
  TrainOptions options_;           // of the run
  Signature signature_;
  std::unique_ptr<UnpackedTokenizer> tokenizer_;  // of an exported file
  std::vector<Field> inputs_;
  Dims output_dims_;
  int64_t outputs_ = 0, step_ = 0, batch_ = 0;
  bool batch_is_fixed_ = false;
  std::vector<std::string> warnings_;
  std::unique_ptr<Executor> executor_;
};

// The probabilities of all classes, of no and yes, or the number.
std::vector<double> Answer(const Signature& signature, const std::vector<double>& output);
// What is said, of a signature of kText.
std::string SpelledText(const Signature& signature, const std::vector<double>& output);
// The classes by falling probability, at most `count`; equal ones in their order.
std::vector<int64_t> Largest(const std::vector<double>& probabilities, int64_t count);
// "cat", or "class 3" where there are no names.
std::string ClassName(const Signature& signature, int64_t index);

}  // namespace ridge
