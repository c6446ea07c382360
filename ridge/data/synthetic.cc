#include "ridge/data/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ridge/core/random.h"

namespace ridge {
namespace {

constexpr int64_t kDraws = 4;  // numbers of one Philox block

// Integers are drawn from [0, extent).
int64_t IntegerExtent(const Field& field) {
  if (field.classes > 0) return field.classes;
  return field.type.dtype == DType::kU8 ? 256 : 2;
}

double ToValue(uint32_t word, const Field& field, int64_t extent) {
  if (IsFloat(field.type.dtype)) return ToUniform(word);
  return static_cast<double>((uint64_t{word} * static_cast<uint64_t>(extent)) >> 32);
}

}  // namespace

SyntheticSource::SyntheticSource(std::string name, std::vector<Field> fields, int64_t samples,
                                 uint64_t seed)
    : Source(std::move(name), std::move(fields), samples), seed_(seed) {
  for (const Field& field : this->fields()) streams_.push_back(StableHash(field.name));
}

Status SyntheticSource::Read(SampleAt at, int field, std::span<char>, void* out) const {
  const Field& description = fields()[static_cast<size_t>(field)];
  const DType dtype = description.type.dtype;
  const int64_t count = description.type.elements();
  const int64_t extent = IntegerExtent(description);
  const RandomKey key{seed_, streams_[static_cast<size_t>(field)],
                      static_cast<uint32_t>(at.index >> 32)};
  for (int64_t i = 0; i < count; i += kDraws) {
    const auto words =
        DrawBlock(key, static_cast<uint32_t>(at.index), static_cast<uint64_t>(i / kDraws));
    std::array<double, kDraws> values{};
    for (size_t j = 0; j < kDraws; ++j) values[j] = ToValue(words[j], description, extent);
    void* to = static_cast<char*>(out) + i * BytesPerElement(dtype);
    ConvertFromDouble(dtype, values.data(), to, std::min(kDraws, count - i));
  }
  return Status();
}

Result<DataSplits> OpenSynthetic(const DataOptions& options) {
  if (options.model_inputs.empty()) {
    return InvalidArgument("data 'synthetic': no fields are given; the model's inputs decide them");
  }
  if (options.synthetic_samples < 1) {
    return InvalidArgument(
        fmt::format("data 'synthetic': {} samples are asked for, at least 1 is needed",
                    options.synthetic_samples));
  }
  DataSplits splits;
  splits.train = std::make_shared<SyntheticSource>("synthetic", options.model_inputs,
                                                   options.synthetic_samples, options.seed);
  return splits;
}

}  // namespace ridge
