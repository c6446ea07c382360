#include "ridge/report/padding_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "ridge/core/rounding.h"
#include "ridge/core/units.h"
#include "ridge/lower/passes.h"
#include "ridge/plan/cost/times.h"
#include "ridge/plan/hardware/padded_channels.h"
#include "ridge/report/table.h"

namespace ridge {
namespace {

constexpr int64_t kAdvisedColumns = 128;  // the width of a product's tile

// The dimension that `pad` makes longer; -1: none.
int PaddedDim(const OpCall& pad) {
  const Dims &from = pad.inputs[0].dims, &to = pad.outputs[0].dims;
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] != to[d]) return static_cast<int>(d);
  }
  return -1;
}

// Padded classes of one product: its weight in a step.
struct PaddedClasses {
  std::string name;  // of the weight's copy
  int64_t columns = 0, padded = 0;
  TensorType weight, copy;
  double seconds = 0;  // of an update: copies, and gradients cut back
};

struct PaddedImage {
  std::string name;
  int64_t channels = 0, padded = 0, more_bytes = 0;  // of a run
  double seconds = 0;                                // of an update
};

class Paddings {
 public:
  explicit Paddings(const PlanSummary& plan) {
    for (const UpdatePart& part : UpdateParts(*plan.program, plan.accumulate)) {
      const std::vector<double> node_s = PlannedNodeSeconds(*part.step);
      for (size_t n = 0; n < node_s.size(); ++n)
        Add(part.step->nodes[n],
            node_s[n] * static_cast<double>(RunsOf(*part.step, n) * part.runs));
    }
  }
  const std::vector<PaddedClasses>& classes() const { return classes_; }
  const std::vector<PaddedImage>& images() const { return images_; }

 private:
  void Add(const PlannedNode& node, double seconds) {
    if (node.def == nullptr) return;
    if (node.op == "pad" && node.name.ends_with(kPaddedSuffix)) AddClasses(node, seconds);
    if (node.op == "slice") AddSlice(node.call, seconds);
    if (const auto padded = PaddedCall(*node.def, node.call)) AddImage(node, *padded, seconds);
  }

  void AddClasses(const PlannedNode& node, double seconds) {
    const TensorType &from = node.call.inputs[0], &to = node.call.outputs[0];
    const int dim = PaddedDim(node.call);
    if (from.rank() != 2 || dim < 0) return;  // a bias: as long as a row
    const auto d = static_cast<size_t>(dim);
    classes_.push_back({node.name, from.dims[d], to.dims[d], from, to, seconds});
  }

  // Of a gradient that has as many columns as the copy.
  void AddSlice(const OpCall& call, double seconds) {
    for (PaddedClasses& one : classes_) {
      if (call.inputs[0].dims == one.copy.dims && call.outputs[0].dims == one.weight.dims)
        one.seconds += seconds;
    }
  }

  void AddImage(const PlannedNode& node, const OpCall& padded, double seconds) {
    const TensorType &image = node.call.inputs[0], &read = padded.inputs[0];
    images_.push_back(
        {node.name, image.dims[1], read.dims[1], read.bytes() - image.bytes(), seconds});
  }

  std::vector<PaddedClasses> classes_;
  std::vector<PaddedImage> images_;
};

std::string Count(int64_t count) { return FormatCount(static_cast<double>(count)); }

std::string TableOf(const Paddings& paddings, const Terminal& terminal) {
  Table table({{"node"}, {"has"}, {"is read as", Align::kRight}, {"price of a step"}});
  for (const PaddedClasses& one : paddings.classes()) {
    table.AddRow({one.name, Count(one.columns) + " columns", Count(one.padded),
                  fmt::format("{} of copies", FormatSeconds(one.seconds))});
  }
  for (const PaddedImage& image : paddings.images()) {
    table.AddRow({image.name, FormatCountOf(image.channels, "channel"), Count(image.padded),
                  fmt::format("{} more are read, in the {} that it takes",
                              FormatBytes(image.more_bytes), FormatSeconds(image.seconds))});
  }
  return table.ToText(terminal);
}

}  // namespace

std::string PaddingReport(const PlanSummary& plan, const RewriteRules& rules,
                          const Terminal& terminal) {
  const ProductMultiple multiple = rules.MultipleOfProducts();
  std::string text = Styled("Padding", Style::kBold, terminal) + "  ";
  if (multiple.needed == 1)
    return text + "costs nothing: kernels of this device want no multiples\n";
  const Paddings paddings(plan);
  if (paddings.classes().empty() && paddings.images().empty()) {
    return text + fmt::format(
                      "costs nothing: logits have multiples of {} columns, images of "
                      "16-bit convolutions multiples of 8 channels\n",
                      multiple.needed);
  }
  text += "what 16-bit kernels read in place of the model's sizes\n" + TableOf(paddings, terminal);
  for (const PaddedClasses& one : paddings.classes()) {
    text += fmt::format("  hint: a model with {} columns spares the copies of '{}'\n",
                        Count(RoundUp(one.columns, kAdvisedColumns)), one.name);
  }
  return text;
}

}  // namespace ridge
