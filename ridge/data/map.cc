#include "ridge/data/map.h"

#include <algorithm>
#include <utility>

namespace ridge {

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
  int64_t largest = 0;
  for (const FieldMap& map : maps_) {
    if (map.conversion.is_copy() || source_->View(0, map.field) != nullptr) continue;
    largest = std::max(largest, source_->fields()[static_cast<size_t>(map.field)].type.bytes());
  }
  scratch_.resize(static_cast<size_t>(largest));
}

Status MapSource::Read(int64_t index, int field, void* out) const {
  const FieldMap& map = maps_[static_cast<size_t>(field)];
  if (map.conversion.is_copy()) return source_->Read(index, map.field, out);
  if (const void* from = source_->View(index, map.field)) {
    Convert(map.conversion, from, out);
    return Status();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  RIDGE_RETURN_IF_ERROR(source_->Read(index, map.field, scratch_.data()));
  Convert(map.conversion, scratch_.data(), out);
  return Status();
}

}  // namespace ridge
