#include "ridge/data/map.h"

#include <algorithm>
#include <utility>

#include "ridge/core/rounding.h"

namespace ridge {
namespace {

constexpr int64_t kScratchAlignment = 64;  // of the source's scratch behind our own

int64_t FieldBytes(const Source& source, int field) {
  return RoundUp(source.fields()[static_cast<size_t>(field)].type.bytes(), kScratchAlignment);
}

// Of what is converted and lies nowhere in memory.
int64_t LargestConversion(const Source& source, const std::vector<FieldMap>& maps) {
  int64_t largest = 0;
  for (const FieldMap& map : maps) {
    if (!map.conversion.is_copy() && source.View(0, map.field) == nullptr)
      largest = std::max(largest, FieldBytes(source, map.field));
  }
  return largest;
}

}  // namespace

Result<SourcePtr> MapSource::Create(SourcePtr source, const BatchSpec& spec) {
  RIDGE_ASSIGN_OR_RETURN(std::vector<FieldMap> maps, MatchFields(spec, *source));
  std::vector<Field> fields;
  for (size_t i = 0; i < maps.size(); ++i) {
    const Field& from = source->fields()[static_cast<size_t>(maps[i].field)];
    fields.push_back({spec.inputs[i].name, spec.inputs[i].type, from.classes});
  }
  return SourcePtr(new MapSource(std::move(source), std::move(fields), std::move(maps)));
}

MapSource::MapSource(SourcePtr source, std::vector<Field> fields, std::vector<FieldMap> maps)
    : Source(source->name(), std::move(fields), source->size()),
      source_(std::move(source)),
      maps_(std::move(maps)),
      own_scratch_(LargestConversion(*source_, maps_)) {}

int64_t MapSource::ConversionBytes(const Source& source, const BatchSpec& spec) {
  const auto maps = MatchFields(spec, source);
  if (maps.ok()) return LargestConversion(source, *maps);
  int64_t largest = 0;
  for (size_t f = 0; f < source.fields().size(); ++f)
    largest = std::max(largest, FieldBytes(source, static_cast<int>(f)));
  return largest;
}

Status MapSource::Read(SampleAt at, int field, std::span<char> scratch, void* out) const {
  const FieldMap& map = maps_[static_cast<size_t>(field)];
  if (map.conversion.is_copy()) return source_->Read(at, map.field, scratch, out);
  if (const void* from = source_->View(at.index, map.field)) {
    const StageTimer timer(at.stages, InputStage::kNormalize);
    Convert(map.conversion, from, out);
    return Status();
  }
  const std::span<char> sample = scratch.first(static_cast<size_t>(own_scratch_));
  RIDGE_RETURN_IF_ERROR(
      source_->Read(at, map.field, scratch.subspan(sample.size()), sample.data()));
  const StageTimer timer(at.stages, InputStage::kNormalize);
  Convert(map.conversion, sample.data(), out);
  return Status();
}

}  // namespace ridge
