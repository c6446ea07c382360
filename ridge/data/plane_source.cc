// Scratch: the picture in its own order, then what the source needs.
#include "ridge/data/plane_source.h"

#include "ridge/core/rounding.h"
#include "ridge/data/batch_spec.h"

namespace ridge {
namespace {

constexpr int64_t kAlignment = 64;

bool IsChannels(int64_t extent) { return extent == 1 || extent == 3; }

TensorType Reordered(const TensorType& type, PlaneOrder order) {
  const Dims& d = type.dims;
  return {type.dtype, order == PlaneOrder::kLast ? Dims{d[1], d[2], d[0]} : Dims{d[2], d[0], d[1]}};
}

std::vector<Field> FieldsOf(const Source& source, int field, PlaneOrder order) {
  std::vector<Field> fields = source.fields();
  TensorType& type = fields[static_cast<size_t>(field)].type;
  type = Reordered(type, order);
  return fields;
}

// from [rows, columns] -> to [columns, rows]
void Transpose(const uint8_t* from, int64_t rows, int64_t columns, uint8_t* to) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column)
      to[column * rows + row] = from[row * columns + column];
  }
}

class PlaneSource : public Source {
 public:
  PlaneSource(SourcePtr source, int field, PlaneOrder order)
      : Source(source->name(), FieldsOf(*source, field, order), source->size()),
        source_(std::move(source)),
        field_(field) {
    const Field& whole = source_->fields()[static_cast<size_t>(field)];
    bytes_ = whole.type.bytes();
    rows_ = order == PlaneOrder::kLast ? whole.type.dims[0] : bytes_ / whole.type.dims[2];
  }

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override {
    if (field != field_) return source_->Read(at, field, scratch, out);
    const std::span<char> rest = scratch.subspan(static_cast<size_t>(RoundUp(bytes_, kAlignment)));
    RIDGE_RETURN_IF_ERROR(source_->Read(at, field, rest, scratch.data()));
    Transpose(reinterpret_cast<const uint8_t*>(scratch.data()), rows_, bytes_ / rows_,
              static_cast<uint8_t*>(out));
    return Status();
  }
  int64_t scratch_bytes() const override {
    return RoundUp(bytes_, kAlignment) + source_->scratch_bytes();
  }
  int64_t heap_bytes() const override { return source_->heap_bytes(); }
  bool reads_slowly() const override { return source_->reads_slowly(); }
  bool reads_crops() const override { return source_->reads_crops(); }
  const void* View(int64_t index, int field) const override {
    return field == field_ ? nullptr : source_->View(index, field);
  }
  std::string Origin(int64_t index) const override { return source_->Origin(index); }
  std::string OriginAt(SampleAt at) const override { return source_->OriginAt(at); }
  int64_t resident_bytes() const override { return source_->resident_bytes(); }
  const Source* storage() const override { return source_->storage(); }

 private:
  const SourcePtr source_;
  const int field_;
  int64_t bytes_ = 0, rows_ = 0;  // of a picture of the source
};

}  // namespace

int FindPlanes(const Source& source) {
  const Field* field = FindFieldByName("image", source.fields());
  if (field == nullptr || field->type.dtype != DType::kU8) return -1;
  const Dims& dims = field->type.dims;
  if (dims.size() != 3 || IsChannels(dims[2]) || !IsChannels(dims[0])) return -1;
  return static_cast<int>(field - source.fields().data());
}

SourcePtr ReorderPlanes(SourcePtr source, int field, PlaneOrder order) {
  return std::make_shared<PlaneSource>(std::move(source), field, order);
}

}  // namespace ridge
