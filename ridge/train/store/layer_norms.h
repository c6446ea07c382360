// layers.jsonl of a run folder: how large weights and gradients are, layer by layer.
//
// A layer is a parameter of two dimensions or more.  Its gradient is what the optimizer keeps of it
// (value_histograms.h).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ridge {

inline constexpr char kLayersFile[] = "layers.jsonl";

struct LayerNorms {
  std::string name;
  double weight_rms = 0;  // root of the mean square; no number where an element is none
  std::optional<double> gradient_rms;  // nothing where the optimizer keeps none
};

struct LayerReport {
  int64_t step = 0;
  std::vector<LayerNorms> layers;
};

std::string LayerReportLine(const LayerReport& report);

// Lines that are no reports are skipped.  A report replaces those of its step and of later ones,
// which a resumed run had written before.
std::vector<LayerReport> ReadLayerReports(const std::string& text);

}  // namespace ridge
