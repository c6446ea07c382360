#include "ridge/observe/metric_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ridge/core/units.h"

namespace ridge {
namespace {

enum class Better { kMore, kLess };

struct MetricName {
  const char *name, *title;
  Better better;
  bool share;
};

constexpr std::array kNames = {
    MetricName{"accuracy", "accuracy", Better::kMore, true},
    MetricName{"top5_accuracy", "top-5 accuracy", Better::kMore, true},
    MetricName{"f1_macro", "macro F1", Better::kMore, true},
    MetricName{"mean_iou", "mean IoU", Better::kMore, true},
    MetricName{"mean_dice", "mean Dice", Better::kMore, true},
    MetricName{"map50", "mAP50", Better::kMore, true},
    MetricName{"map50_95", "mAP50-95", Better::kMore, true},
    MetricName{"wer", "word error rate", Better::kLess, true},
    MetricName{"cer", "character error rate", Better::kLess, true},
    MetricName{"r2", "R2", Better::kMore, false},
};

MetricName Find(const std::string& name) {
  const auto found = std::find_if(kNames.begin(), kNames.end(),
                                  [&](const MetricName& known) { return known.name == name; });
  return found != kNames.end() ? *found
                               : MetricName{name.c_str(), name.c_str(), Better::kLess, false};
}

}  // namespace

std::string MetricTitle(const std::string& name) { return Find(name).title; }

std::string MetricValueText(const std::string& name, double value) {
  return Find(name).share ? FormatPercent(value) : fmt::format("{:.4g}", value);
}

std::string MetricText(const std::string& name, double value) {
  return MetricTitle(name) + " " + MetricValueText(name, value);
}

std::optional<double> FindMetric(const NamedMetrics& metrics, const std::string& name) {
  for (const auto& [known, value] : metrics) {
    if (known == name) return value;
  }
  return std::nullopt;
}

bool MoreIsBetter(const std::string& name) { return Find(name).better == Better::kMore; }

}  // namespace ridge
