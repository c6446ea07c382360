#include "ridge/data/map.h"

#include <algorithm>
#include <utility>

#include "ridge/core/rounding.h"

namespace ridge {
namespace {

constexpr int64_t kScratchAlignment = 64;  // of the source's scratch behind our own

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
      maps_(std::move(maps)) {
  for (const FieldMap& map : maps_) {
    if (map.conversion.is_copy() || source_->View(0, map.field) != nullptr) continue;
    const int64_t bytes = source_->fields()[static_cast<size_t>(map.field)].type.bytes();
    own_scratch_ = std::max(own_scratch_, RoundUp(bytes, kScratchAlignment));
  }
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
