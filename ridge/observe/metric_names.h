// What the metrics of an evaluation are called in messages, and which way is better.
//
//   MetricText("f1_macro", 0.5)   "macro F1 50.0 %"
#pragma once
#include <optional>
#include <string>

#include "ridge/observe/evaluation_record.h"

namespace ridge {

// A metric without a title has its own name.
std::string MetricTitle(const std::string& name);

// With the title; shares in percent.
std::string MetricText(const std::string& name, double value);

// The value alone.
std::string MetricValueText(const std::string& name, double value);

// Nothing when there is none of that name.
std::optional<double> FindMetric(const NamedMetrics& metrics, const std::string& name);

// Whether the greater of two values is the better one.
bool MoreIsBetter(const std::string& name);

}  // namespace ridge
