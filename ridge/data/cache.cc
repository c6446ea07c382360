// Around a MapSource it trades memory (4 bytes a pixel instead of 1) for time.  Filled at once, not
// on first use: what a run will hold is then known before its first step.
#include "ridge/data/cache.h"

#include <utility>
#include <vector>

#include "ridge/data/memory_source.h"

namespace ridge {
namespace {

TensorType WholeType(const Source& source, const Field& field) {
  Dims dims = field.type.dims;
  dims.insert(dims.begin(), source.size());
  return TensorType{field.type.dtype, std::move(dims)};
}

Result<Tensor> ReadAll(const Source& source, int field) {
  const Field& description = source.fields()[static_cast<size_t>(field)];
  RIDGE_ASSIGN_OR_RETURN(Tensor tensor, MakeTensor(source.name(), WholeType(source, description)));
  std::vector<char> scratch(static_cast<size_t>(source.scratch_bytes()));
  for (int64_t i = 0; i < source.size(); ++i) {
    char* to = tensor.as_mutable<char>() + i * description.type.bytes();
    RIDGE_RETURN_IF_ERROR(source.Read({i}, field, scratch, to));
  }
  return tensor;
}

}  // namespace

int64_t CachedBytes(const Source& source) {
  int64_t bytes = 0;
  for (const Field& field : source.fields()) bytes += source.size() * field.type.bytes();
  return bytes;
}

Result<SourcePtr> CacheInMemory(const Source& source) {
  std::vector<NamedTensor> fields;
  for (size_t i = 0; i < source.fields().size(); ++i) {
    RIDGE_ASSIGN_OR_RETURN(Tensor tensor, ReadAll(source, static_cast<int>(i)));
    fields.emplace_back(source.fields()[i].name, std::move(tensor));
  }
  return MemorySource::Create(source.name(), std::move(fields));
}

}  // namespace ridge
