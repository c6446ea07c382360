#include "ridge/data/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "ridge/core/random.h"
#include "ridge/core/rounding.h"

namespace ridge {
namespace {

constexpr int64_t kWords = 4;  // of one Philox block
// Drawn at a time; a multiple of kDrawBlocks.
constexpr int64_t kBlocks = 4 * kDrawBlocks;

// From here on a sample is worth a worker's turn.
constexpr int64_t kSlowElements = 1 << 16;

// Integers are drawn from [0, extent).
int64_t IntegerExtent(const Field& field) {
  if (field.classes > 0) return field.classes;
  return field.type.dtype == DType::kU8 ? 256 : 2;
}

double ToValue(uint32_t word, const Field& field, int64_t extent) {
  if (IsFloat(field.type.dtype)) return ToUniform(word);
  return static_cast<double>((uint64_t{word} * static_cast<uint64_t>(extent)) >> 32);
}

void WriteValues(std::span<const uint32_t> words, const Field& field, void* to) {
  if (field.type.dtype == DType::kF32) {
    std::transform(words.begin(), words.end(), static_cast<float*>(to), ToUniform);
    return;
  }
  const int64_t extent = IntegerExtent(field);
  std::array<double, kBlocks * kWords> values{};
  std::transform(words.begin(), words.end(), values.begin(),
                 [&](uint32_t word) { return ToValue(word, field, extent); });
  ConvertFromDouble(field.type.dtype, values.data(), to, std::ssize(words));
}

}  // namespace

SyntheticSource::SyntheticSource(std::string name, std::vector<Field> fields, int64_t samples,
                                 uint64_t seed)
    : Source(std::move(name), std::move(fields), samples), seed_(seed) {
  for (const Field& field : this->fields()) {
    streams_.push_back(StableHash(field.name));
    slow_ = slow_ || field.type.elements() >= kSlowElements;
  }
}

Status SyntheticSource::Read(SampleAt at, int field, std::span<char>, void* out) const {
  const Field& description = fields()[static_cast<size_t>(field)];
  const int64_t count = description.type.elements();
  const RandomKey key{seed_, streams_[static_cast<size_t>(field)],
                      static_cast<uint32_t>(at.index >> 32)};
  std::array<uint32_t, kBlocks * kWords> words{};
  for (int64_t i = 0; i < count; i += std::ssize(words)) {
    const int64_t drawn = std::min<int64_t>(std::ssize(words), count - i);
    DrawWords(key, static_cast<uint32_t>(at.index), static_cast<uint64_t>(i / kWords),
              RoundUp(CeilDiv(drawn, kWords), kDrawBlocks), words.data());
    void* to = static_cast<char*>(out) + i * BytesPerElement(description.type.dtype);
    WriteValues(std::span(words).first(static_cast<size_t>(drawn)), description, to);
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
