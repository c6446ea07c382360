#include "tests/cuda_text/case_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include "ridge/backend/cuda/kernels/index_text.h"

namespace ridge::cuda_text {
namespace {

constexpr size_t kMostForms = 3;  // of an operator and layout, with indices of 64 bits

std::set<std::string> ChosenOps() {
  std::set<std::string> ops;
  const char* text = std::getenv("RIDGE_CUDA_TEXT_OPS");
  std::stringstream list(text == nullptr ? "" : text);
  for (std::string op; std::getline(list, op, ',');) ops.insert(op);
  return ops;
}

// Of which CheckBackend has inputs in other layouts.
bool AnyOfFourDimensions(const OpCall& call) {
  return std::any_of(call.inputs.begin(), call.inputs.end(), [](const TensorType& type) {
    return type.rank() == 4 && cuda::HasLayouts(type);
  });
}

void AddCase(const CaseFile& file, const OpCase& op_case, CaseKernels& found) {
  const OpDef* op = FindOp(file.op);
  const Result<OpCall> call = InferCase(*op, op_case);
  ASSERT_TRUE(call.ok()) << call.status().message();
  Result<cuda::WrittenKernel> written = cuda::WriteKernel(*op, *call);
  if (!written.ok()) {
    ++found.without[file.op + ": " + written.status().message()];
    return;
  }
  const std::string name =
      std::filesystem::path(file.path).filename().string() + ":" + std::to_string(op_case.line);
  found.kernels.push_back(
      {op, op_case, *call, kRowMajor, std::move(written->name), std::move(written->text), name});
  if (!AnyOfFourDimensions(*call)) return;
  written = cuda::WriteKernel(*op, *call, cuda::kChannelsLast);
  if (written.ok())
    found.kernels.push_back({op, op_case, *call, cuda::kChannelsLast, std::move(written->name),
                             std::move(written->text), name + " channels_last"});
}

// Its text without numbers.
std::string FormOf(const CaseKernel& kernel) {
  static const std::regex numbers("[0-9]+");
  return std::regex_replace(kernel.text.source, numbers, "");
}

}  // namespace

std::vector<std::string> CaseKernel::Sources() const {
  std::vector<std::string> sources = {text.source};
  if (layout == kRowMajor) return sources;
  const Result<cuda::WrittenKernel> row_major = cuda::WriteKernel(*op, call);
  if (row_major.ok()) sources.push_back(row_major->text.source);
  const auto add = [&](const TensorType& type) {
    if (type.rank() < 3 || type.rank() > 5) return;
    for (const LayoutId from : {kRowMajor, cuda::kChannelsLast})
      sources.push_back(cuda::ReorderText(type, from).source);
  };
  for (const TensorType& type : call.inputs) add(type);
  for (const TensorType& type : call.outputs) add(type);
  return sources;
}

bool IsChosen(const std::string& op) {
  const std::set<std::string> chosen = ChosenOps();
  return chosen.empty() || chosen.contains(op);
}

CaseKernels KernelsOfCases() {
  CaseKernels found;
  for (const std::string& path : AllCaseFiles()) {
    const Result<CaseFile> file = ReadCaseFile(path);
    EXPECT_TRUE(file.ok()) << file.status().message();
    if (!file.ok() || !IsChosen(file->op)) continue;
    for (const OpCase& op_case : file->cases) {
      if (op_case.kind != OpCase::Kind::kError) AddCase(*file, op_case, found);
    }
  }
  return found;
}

std::vector<CaseKernel> WideKernels() {
  const std::vector<CaseKernel> narrow = KernelsOfCases().kernels;
  const cuda::WideIndicesFrom wide_from(0);
  std::vector<CaseKernel> wide = KernelsOfCases().kernels, kept;
  std::map<std::pair<std::string, LayoutId>, std::set<std::string>> forms;
  for (size_t k = 0; k < wide.size(); ++k) {
    if (wide[k].text.source == narrow[k].text.source) continue;
    std::set<std::string>& known = forms[{wide[k].op->name, wide[k].layout}];
    if (known.size() < kMostForms && known.insert(FormOf(wide[k])).second) kept.push_back(wide[k]);
  }
  return kept;
}

}  // namespace ridge::cuda_text
