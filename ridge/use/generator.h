// Generator: a language model that is fed one token after another.
//
//   auto generator = Generator::Create({.model = "runs/gpt"}, machine);
//   for (int64_t token : prompt) logits = generator->Feed(token);
//   next = SampleToken(*logits, options, generator->position());
//
// Runs the model's decode form (learn/decode_form.h): a step costs one position, and keys and
// values of the earlier ones stay in the arena.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ridge/runtime/executor.h"
#include "ridge/train/options/machine.h"

namespace ridge {

struct GeneratorRequest {
  std::string model;                         // a run folder, or any model of `ridge run`
  std::string checkpoint = "newest";         // of a run (Checkpoints::Find)
  std::map<std::string, int64_t> dims = {};  // named dimensions of files
  std::string weights = {};                  // see ModelRequest
  std::vector<std::string> weights_skip = {};
  uint64_t seed = 0;  // of initial values, where the model has no trained ones
};

class Generator {
 public:
  // Fails as LoadModel does, and with kUnsupported when the model is no language model of causal
  // attention.
  static Result<std::unique_ptr<Generator>> Create(const GeneratorRequest& request,
                                                   const Machine& machine);

  int64_t context() const { return context_; }        // positions that the model has
  int64_t vocabulary() const { return vocabulary_; }  // tokens are 0 to vocabulary() - 1
  int64_t position() const { return position_; }      // tokens fed so far
  const Program& program() const { return executor_->program(); }
  const std::vector<std::string>& warnings() const { return warnings_; }

  // The logits of the token behind this one; valid until the next call.  Fails with
  // kInvalidArgument for a token beyond the vocabulary, and when the context is full.
  Result<std::span<const float>> Feed(int64_t token);

 private:
  Generator() = default;

  std::unique_ptr<Executor> executor_;
  std::vector<std::string> warnings_;
  std::string tokens_;  // the input's name
  DType token_type_ = DType::kI64;
  int64_t context_ = 0, vocabulary_ = 0, position_ = 0;
  std::vector<float> logits_;
};

}  // namespace ridge
