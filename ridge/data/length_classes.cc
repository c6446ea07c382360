#include "ridge/data/length_classes.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/core/tensor.h"
#include "ridge/data/batch_spec.h"

namespace ridge {
namespace {

constexpr const char* kMask = "attention_mask";

// Of one mask: its first 1, and one past its last; {0, 0} where there is none.
struct Shown {
  int64_t begin = 0, end = 0;
};

Shown ShownOf(const Tensor& mask) {
  Shown shown;
  for (int64_t i = 0; i < mask.type().elements(); ++i) {
    if (LoadAsDouble(mask.type().dtype, mask.data(), i) == 0) continue;
    if (shown.end == 0) shown.begin = i;
    shown.end = i + 1;
  }
  return shown;
}

// What each sample's mask shows.
Result<std::vector<Shown>> ReadMasks(const Source& source) {
  const Field& field = *FindFieldByName(kMask, source.fields());
  const int number = source.FindField(field.name);
  Tensor mask(field.type);
  std::vector<char> scratch(static_cast<size_t>(source.scratch_bytes()));
  std::vector<Shown> all(static_cast<size_t>(source.size()));
  for (int64_t i = 0; i < source.size(); ++i) {
    RIDGE_RETURN_IF_ERROR(source.Read({.index = i}, number, scratch, mask.mutable_data()));
    all[static_cast<size_t>(i)] = ShownOf(mask);
  }
  return all;
}

size_t ClassOf(const LengthClasses& found, int64_t length) {
  size_t c = 0;
  while (c + 1 < found.classes.size() && length > found.classes[c].of.length) ++c;
  return c;
}

// Moves the last `count` samples of a class to another.
void Move(int64_t count, LengthClass& from, LengthClass& to) {
  to.samples.insert(to.samples.end(), from.samples.end() - count, from.samples.end());
  from.samples.resize(from.samples.size() - static_cast<size_t>(count));
}

// Shorter classes have whole batches, the longest at least one.
void FillBatches(LengthClasses& found) {
  std::vector<LengthClass>& classes = found.classes;
  for (size_t c = 0; c + 1 < classes.size(); ++c) {
    const auto size = static_cast<int64_t>(classes[c].samples.size());
    Move(size % classes[c].of.batch, classes[c], classes[c + 1]);
  }
  for (size_t c = classes.size() - 1; c-- > 0 && classes.back().batches() == 0;) {
    if (classes[c].batches() > 0) Move(classes[c].of.batch, classes[c], classes.back());
  }
  for (LengthClass& of : classes) std::sort(of.samples.begin(), of.samples.end());
}

}  // namespace

int64_t LengthClasses::batches() const {
  int64_t sum = 0;
  for (const LengthClass& of : classes) sum += of.batches();
  return sum;
}

int64_t LengthClasses::dropped() const {
  int64_t sum = 0;
  for (const LengthClass& of : classes)
    sum += static_cast<int64_t>(of.samples.size()) - of.batches() * of.of.batch;
  return sum;
}

int64_t LengthClasses::bytes() const {
  int64_t sum = 0;
  for (const LengthClass& of : classes)
    sum += static_cast<int64_t>(of.samples.capacity() * sizeof(uint32_t));
  return sum;
}

int64_t MaskLength(const Source& source) {
  const Field* field = FindFieldByName(kMask, source.fields());
  return field != nullptr && field->type.rank() == 1 ? field->type.dims[0] : 0;
}

Result<LengthClassesPtr> FindLengthClasses(const Source& source,
                                           const std::vector<BatchLength>& lengths) {
  if (const int64_t whole = MaskLength(source); whole != lengths.back().length) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: the field {} of a sample is {} tokens long; batches by length "
                              "need one of {}. hint: leave --bucket out",
                              source.name(), kMask, whole, lengths.back().length));
  }
  if (source.draws_by_epoch()) {
    return Status(ErrorCode::kUnsupported,
                  fmt::format("{}: draws its samples anew in each epoch, so batches by length are "
                              "not known. hint: leave --bucket out",
                              source.name()));
  }
  auto found = std::make_shared<LengthClasses>();
  for (const BatchLength& of : lengths) found->classes.push_back({of, {}});
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Shown> masks, ReadMasks(source));
  found->padded_in_front =
      std::any_of(masks.begin(), masks.end(), [](const Shown& mask) { return mask.begin > 0; });
  for (size_t i = 0; i < masks.size(); ++i) {
    const int64_t length =
        found->padded_in_front ? lengths.back().length - masks[i].begin : masks[i].end;
    const size_t c = ClassOf(*found, masks[i].end == 0 ? 0 : length);
    found->classes[c].samples.push_back(static_cast<uint32_t>(i));
  }
  FillBatches(*found);
  for (LengthClass& of : found->classes) of.samples.shrink_to_fit();
  return LengthClassesPtr(std::move(found));
}

uint32_t NextOfClass(const LengthClass& of, uint32_t sample) {
  const auto next = std::upper_bound(of.samples.begin(), of.samples.end(), sample);
  return next == of.samples.end() ? of.samples.front() : *next;
}

}  // namespace ridge
