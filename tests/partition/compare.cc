#include "tests/partition/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ridge {
namespace {

bool SameNumber(double a, double b, double margin) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::abs(a - b) <= margin;
}

std::string CompareVariables(const VirtualDevices& one, const Graph& whole,
                             const VirtualDevices& many, const Graph& form) {
  for (ValueKind kind : {ValueKind::kParameter, ValueKind::kState}) {
    for (ValueId id : whole.ValuesOfKind(kind)) {
      const std::string& name = whole.value(id).name;
      const ValueId same = form.FindValue(name);
      if (same == kNoValue) continue;
      const Result<std::vector<double>> want = one.Variable(id), got = many.Variable(same);
      if (!got.ok()) return got.status().message();
      const std::string wrong = CompareNumbers(*got, *want);
      if (!wrong.empty()) return fmt::format("variable '{}' {}", name, wrong);
    }
  }
  return "";
}

}  // namespace

std::string CompareNumbers(const std::vector<double>& got, const std::vector<double>& want,
                           double relative) {
  if (got.size() != want.size())
    return fmt::format("has {} numbers, not {}", got.size(), want.size());
  double largest = 1;
  for (double x : want)
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < want.size(); ++i) {
    if (!SameNumber(got[i], want[i], relative * largest))
      return fmt::format("is {} at {}, not {}", got[i], i, want[i]);
  }
  return "";
}

NamedNumbers NumbersOf(const std::map<std::string, Tensor>& tensors) {
  NamedNumbers numbers;
  for (const auto& [name, tensor] : tensors) {
    std::vector<double>& to = numbers[name];
    for (int64_t i = 0; i < tensor.elements(); ++i) to.push_back(tensor.at(i));
  }
  return numbers;
}

std::string CompareSteps(const Graph& whole, const Partitioned& parts, const Graph& form,
                         const NamedNumbers& inputs, int steps, uint64_t seed) {
  const Partitioned alone = OnOneDevice(whole);
  Result<VirtualDevices> one = VirtualDevices::Create(whole, alone, seed);
  Result<VirtualDevices> many = VirtualDevices::Create(form, parts, seed);
  if (!one.ok()) return one.status().message();
  if (!many.ok()) return many.status().message();
  for (int step = 1; step <= steps; ++step) {
    NamedNumbers given = inputs;
    if (given.contains("ridge.step")) given["ridge.step"] = {static_cast<double>(step)};
    const Result<NamedNumbers> want = one->Step(given), got = many->Step(given);
    if (!want.ok()) return want.status().message();
    if (!got.ok()) return got.status().message();
    for (const auto& [name, numbers] : *want) {
      const std::string wrong = CompareNumbers(got->at(name), numbers);
      if (!wrong.empty()) return fmt::format("step {}: output '{}' {}", step, name, wrong);
    }
  }
  return CompareVariables(*one, whole, *many, form);
}

}  // namespace ridge
