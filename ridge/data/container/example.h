// tf.train.Example: walks the protobuf message without copying it.
//
//   Example{ Features features = 1 }         Features{ map<string, Feature> feature = 1 }
//   Feature{ oneof { BytesList = 1, FloatList = 2, Int64List = 3 } }, each with `repeated value =
//   1`
//
// As TensorFlow's parser: packed and single values, unknown fields are passed over, of equal keys
// the last one wins.  Failures are kInvalidData; the message is the bare reason.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "ridge/core/status.h"

namespace ridge {

enum class FeatureKind : uint8_t { kNone, kBytes, kFloat, kInt64 };

const char* FeatureKindName(FeatureKind kind);  // "bytes"

// Bytes that a walk looks at: a whole record in memory, or a part of a file.
class RecordView {
 public:
  virtual ~RecordView() = default;
  virtual int64_t size() const = 0;
  // Valid until the next call.  REQUIRES: the bytes lie in the record.
  virtual Result<std::string_view> At(int64_t offset, int64_t bytes) = 0;
};

class MemoryView final : public RecordView {
 public:
  explicit MemoryView(std::string_view bytes) : bytes_(bytes) {}
  int64_t size() const override { return static_cast<int64_t>(bytes_.size()); }
  Result<std::string_view> At(int64_t offset, int64_t bytes) override {
    return bytes_.substr(static_cast<size_t>(offset), static_cast<size_t>(bytes));
  }

 private:
  std::string_view bytes_;
};

// A stretch of a record.
struct RecordPart {
  int64_t begin = 0;
  int64_t bytes = 0;
};

struct Feature {
  FeatureKind kind = FeatureKind::kNone;
  RecordPart list;  // the BytesList, FloatList or Int64List
};

// `found` is called for each feature in the order of the record, with its name, which is valid
// until the view is asked again.
Status ForEachFeature(RecordView& record,
                      const std::function<Status(std::string_view name, const Feature&)>& found);

// How many values a list has, and where the last of a BytesList lies.
struct ValueCount {
  int64_t count = 0;
  RecordPart value;
};
Result<ValueCount> CountValues(RecordView& record, const Feature& feature);

// The values of a list.  Fails unless there are as many as `to` takes.
Status TakeInt64s(RecordView& record, const RecordPart& list, std::span<int64_t> to);
Status TakeFloats(RecordView& record, const RecordPart& list, std::span<float> to);

}  // namespace ridge
