#include "tests/generate/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ridge/graph/interpret.h"
#include "ridge/lower/pipeline.h"
#include "tests/generate/differences.h"
#include "tests/generate/forms.h"
#include "tests/generate/precision.h"
#include "tests/generate/rounding.h"

namespace ridge {
namespace {

constexpr int kSamples = 3;
constexpr int kMoreSamples = 40;  // when fewer say that something is wrong

std::vector<std::string> RewriteNames() {
  std::vector<std::string> names;
  for (const PassInfo& pass : AllPasses()) {
    if (pass.run != nullptr) names.push_back(pass.name);
  }
  return names;
}

// Passes whose results passes.h promises bit by bit.
bool KeepsBits(const std::string& pass) {
  return pass != "algebra" && pass != "patterns" && pass != "attention";
}

class Judge_ {
 public:
  Judge_(const Graph& forward, uint64_t seed, const Laws& laws, const Machine& machine)
      : forward_(forward), dice_(seed ^ 0x5EED), laws_(laws), machine_(machine) {}

  GraphJudgement Run() {
    const Status status = RunLaws();
    if (!status.ok() && !judgement_.finding)
      judgement_.finding = {law_ + " fails", status.message()};
    return judgement_;
  }

 private:
  Status RunLaws() {
    // Every choice is made whatever the laws, so that a law alone judges the same.
    const std::string pass = dice_.OneOf(RewriteNames());
    const bool alone = dice_.Percent(50), imported = dice_.Percent(50);
    const std::string less = "-" + pass, passes = alone ? "only:" + pass : less;
    const std::string train_passes = dice_.Percent(70) ? "" : dice_.Percent(50) ? "none" : less;
    const Dice directions(dice_.Next());
    const uint64_t precision = dice_.Next();
    law_ = "gradients";
    leaves_ = LeavesOf(forward_);
    RIDGE_ASSIGN_OR_RETURN(form_, GradForm(forward_));
    RIDGE_ASSIGN_OR_RETURN(RoundingModel model, RoundingModel::Make(form_, leaves_));
    model_ = &model;
    if (!Finite()) return Status();
    if (laws_.differences) RIDGE_RETURN_IF_ERROR(CheckDifferences(directions));
    if (laws_.passes) {
      RIDGE_RETURN_IF_ERROR(CheckPasses(""));
      RIDGE_RETURN_IF_ERROR(CheckPasses(passes));
    }
    if (laws_.training) RIDGE_RETURN_IF_ERROR(CheckTraining(train_passes, imported));
    if (!laws_.precision || judgement_.finding) return Status();
    law_ = "precision";
    return CheckPrecision(forward_, precision, machine_, judgement_);
  }

  bool Finite() {
    for (const auto& [name, tensor] : model_->exact()) {
      for (int64_t i = 0; i < tensor.elements(); ++i) {
        if (std::isfinite(tensor.at(i))) continue;
        judgement_.not_checked = "a gradient is not finite";
        return false;
      }
    }
    return true;
  }

  Status CheckDifferences(const Dice& dice) {
    law_ = "differences";
    std::string text;
    RIDGE_ASSIGN_OR_RETURN(const Difference difference,
                           CompareWithDifferences(forward_, leaves_, model_->exact(), dice, text));
    judgement_.kink = difference == Difference::kKink;
    if (difference == Difference::kDiffers) judgement_.finding = {law_, text};
    return Status();
  }

  Status CheckPasses(const std::string& spec) {
    law_ = "passes '" + spec + "'";
    if (judgement_.finding) return Status();
    RIDGE_ASSIGN_OR_RETURN(const PassSelection selection, ParsePassSpec(spec));
    RIDGE_ASSIGN_OR_RETURN(const Graph after,
                           RunPasses(form_, selection, machine_.backend->rules()));
    RIDGE_ASSIGN_OR_RETURN(const std::vector<Tensor> values, EvaluateGraph(after, leaves_));
    NamedTensors got;
    for (const GraphOutput& output : after.outputs())
      got[output.name] = values[static_cast<size_t>(output.value)];
    const bool bitwise = spec.starts_with("only:") && KeepsBits(spec.substr(5));
    bitwise ? CompareBits(got) : CompareNear(got);
    return Status();
  }

  Status CheckTraining(const std::string& passes, bool imported) {
    law_ = fmt::format("training '{}'{}", passes, imported ? " imported" : "");
    if (judgement_.finding) return Status();
    RIDGE_ASSIGN_OR_RETURN(Graph step, TrainForm(forward_, passes, imported));
    RIDGE_ASSIGN_OR_RETURN(const PassSelection selection, ParsePassSpec(passes));
    RIDGE_ASSIGN_OR_RETURN(step, RunPasses(std::move(step), selection, machine_.backend->rules()));
    NamedTensors given = leaves_;
    AddStepInputs(step, given);
    RIDGE_ASSIGN_OR_RETURN(const std::vector<Tensor> values, EvaluateGraph(step, given));
    NamedTensors after;
    for (const GraphUpdate& update : step.updates()) {
      const ValueInfo& variable = step.value(update.variable);
      if (variable.kind == ValueKind::kParameter)
        after[variable.name] = values[static_cast<size_t>(update.value)];
    }
    CompareNear(GradientsOfStep(leaves_, after), /*stepped=*/true);
    return Status();
  }

  void CompareBits(const NamedTensors& got) {
    for (const auto& [name, tensor] : got) {
      if (judgement_.finding || tensor.same_bits(model_->exact().at(name))) continue;
      judgement_.finding = {law_, fmt::format("the bits of '{}' differ", name)};
    }
  }

  // Within rounding of f64.  A parameter's way, `stepped`, is rounded as the parameter is.
  void CompareNear(const NamedTensors& got, bool stepped = false) {
    const Roundoff roundoff = RoundoffOf(DType::kF64);
    std::string wrong = FirstOutside(*model_, roundoff, kSamples, got, stepped);
    if (!wrong.empty()) wrong = FirstOutside(*model_, roundoff, kMoreSamples, got, stepped);
    if (!wrong.empty()) judgement_.finding = {law_, wrong};
  }

  const Graph& forward_;
  Dice dice_;
  const Laws laws_;
  const Machine& machine_;
  GraphJudgement judgement_;
  std::string law_;
  NamedTensors leaves_;
  Graph form_;
  const RoundingModel* model_ = nullptr;
};

}  // namespace

std::optional<Laws> ParseLaws(const std::string& text) {
  if (text == "gradients") return Laws{};
  Laws laws{false, false, false, false};
  if (text == "differences") laws.differences = true;
  if (text == "passes") laws.passes = true;
  if (text == "training") laws.training = true;
  if (text == "precision") laws.precision = true;
  const bool any = laws.differences || laws.passes || laws.training || laws.precision;
  return any ? std::optional(laws) : std::nullopt;
}

GraphJudgement Judge(const Graph& forward, uint64_t seed, const Laws& laws,
                     const Machine& machine) {
  try {
    return Judge_(forward, seed, laws, machine).Run();
  } catch (const std::exception& e) {
    GraphJudgement judgement;
    judgement.finding = {"internal error", e.what()};
    return judgement;
  }
}

}  // namespace ridge
