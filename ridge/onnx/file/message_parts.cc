// A message is a list of fields, each with its number, its wire type and its contents; a message
// within a message is a field of bytes.  What merging the fields in parts gives is what parsing
// them at once gives (protobuf's rule for concatenated messages).
#include "ridge/onnx/file/message_parts.h"

#include <google/protobuf/io/coded_stream.h>

#include <optional>

#include "onnx/onnx-ml.pb.h"

namespace ridge {
namespace {

// protobuf's own limit on nesting is 100; the parts begin one message deeper.
constexpr int kModelDepth = 100;

constexpr uint32_t kBytes = 2;  // the wire type of byte strings, messages and packed numbers

struct WireField {
  uint32_t number = 0;
  uint32_t wire_type = 0;
  std::string_view whole;     // tag, length and contents
  std::string_view contents;  // of wire type kBytes
};

// Walks over the fields of a message.
class WireReader {
 public:
  explicit WireReader(std::string_view message) : rest_(message) {}

  bool done() const { return rest_.empty(); }

  // nullopt when the bytes are no field.
  std::optional<WireField> Next() {
    WireField field;
    const std::string_view begin = rest_;
    const std::optional<uint64_t> tag = Varint();
    if (!tag || *tag > UINT32_MAX || *tag >> 3 == 0) return std::nullopt;
    field.number = static_cast<uint32_t>(*tag >> 3);
    field.wire_type = *tag & 7;
    if (!Skip(field)) return std::nullopt;
    field.whole = begin.substr(0, begin.size() - rest_.size());
    return field;
  }

 private:
  std::optional<uint64_t> Varint() {
    uint64_t value = 0;
    for (size_t i = 0; i < 10 && i < rest_.size(); ++i) {
      const auto byte = static_cast<uint8_t>(rest_[i]);
      value |= static_cast<uint64_t>(byte & 0x7F) << (7 * i);
      if ((byte & 0x80) != 0) continue;
      rest_.remove_prefix(i + 1);
      return value;
    }
    return std::nullopt;
  }

  // Groups (types 3 and 4) are not in ONNX: protobuf checks them.
  bool Skip(WireField& field) {
    if (field.wire_type == 0) return Varint().has_value();
    uint64_t size = field.wire_type == 1 ? 8 : 4;
    if (field.wire_type == kBytes) {
      const std::optional<uint64_t> length = Varint();
      if (!length) return false;
      size = *length;
    } else if (field.wire_type != 1 && field.wire_type != 5) {
      return false;
    }
    if (size > rest_.size()) return false;
    field.contents = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

  std::string_view rest_;
};

bool Merge(std::string_view fields, int depth, google::protobuf::MessageLite& message) {
  if (fields.empty()) return true;
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(fields.data()),
                                                static_cast<int>(fields.size()));
  stream.SetRecursionLimit(depth);
  return message.MergeFromCodedStream(&stream) && stream.ConsumedEntireMessage();
}

// The bytes between the end of one view and the start of another behind it in the same buffer.
std::string_view Between(const char* from, const char* to) {
  return {from, static_cast<size_t>(to - from)};
}

// The only field of a tensor with numbers that can stay where they are.
std::optional<WireField> NumbersOf(std::string_view tensor) {
  std::optional<WireField> found;
  int fields = 0;
  for (WireReader reader(tensor); !reader.done();) {
    const std::optional<WireField> field = reader.Next();
    if (!field) return std::nullopt;
    const bool numbers = field->number == onnx::TensorProto::kRawDataFieldNumber ||
                         field->number == onnx::TensorProto::kFloatDataFieldNumber ||
                         field->number == onnx::TensorProto::kDoubleDataFieldNumber;
    if (!numbers) continue;
    ++fields;
    if (field->wire_type == kBytes && field->contents.size() >= size_t{kLeftOutFrom}) found = field;
  }
  return fields == 1 ? found : std::nullopt;
}

// Whether the field's bytes are what raw_data would hold.
bool AsInRawData(const WireField& numbers, int data_type) {
  if (numbers.number == onnx::TensorProto::kRawDataFieldNumber) return true;
  const bool is_float = numbers.number == onnx::TensorProto::kFloatDataFieldNumber;
  return data_type == (is_float ? onnx::TensorProto::FLOAT : onnx::TensorProto::DOUBLE) &&
         numbers.contents.size() % (is_float ? sizeof(float) : sizeof(double)) == 0;
}

class ModelParser {
 public:
  ModelParser(std::string_view bytes, onnx::ModelProto& model,
              std::map<int, SkippedTensor>& left_out)
      : bytes_(bytes), model_(model), left_out_(left_out) {}

  // Fields before the graph, the graph, fields behind it; there may be several.
  bool ParseModel() {
    const char* merged = bytes_.data();
    for (WireReader reader(bytes_); !reader.done();) {
      const std::optional<WireField> field = reader.Next();
      if (!field) return false;
      if (field->number != onnx::ModelProto::kGraphFieldNumber || field->wire_type != kBytes)
        continue;
      if (!Merge(Between(merged, field->whole.data()), kModelDepth, model_)) return false;
      if (!ParseGraph(field->contents)) return false;
      merged = field->whole.data() + field->whole.size();
    }
    return Merge(Between(merged, bytes_.data() + bytes_.size()), kModelDepth, model_);
  }

 private:
  bool ParseGraph(std::string_view graph) {
    onnx::GraphProto& proto = *model_.mutable_graph();
    const char* merged = graph.data();
    for (WireReader reader(graph); !reader.done();) {
      const std::optional<WireField> field = reader.Next();
      if (!field) return false;
      if (field->number != onnx::GraphProto::kInitializerFieldNumber || field->wire_type != kBytes)
        continue;
      const std::optional<WireField> numbers = NumbersOf(field->contents);
      if (!numbers) continue;
      if (!Merge(Between(merged, field->whole.data()), kModelDepth - 1, proto)) return false;
      if (!ParseTensor(field->contents, *numbers, proto)) return false;
      merged = field->whole.data() + field->whole.size();
    }
    return Merge(Between(merged, graph.data() + graph.size()), kModelDepth - 1, proto);
  }

  bool ParseTensor(std::string_view tensor, const WireField& numbers, onnx::GraphProto& graph) {
    const int index = graph.initializer_size();
    onnx::TensorProto& proto = *graph.add_initializer();
    const char* behind = numbers.whole.data() + numbers.whole.size();
    const bool read = Merge(Between(tensor.data(), numbers.whole.data()), kModelDepth - 2, proto) &&
                      Merge(Between(behind, tensor.data() + tensor.size()), kModelDepth - 2, proto);
    if (!read) return false;
    if (!AsInRawData(numbers, proto.data_type()))
      return Merge(numbers.whole, kModelDepth - 2, proto);
    left_out_[index] = {numbers.contents.data() - bytes_.data(),
                        static_cast<int64_t>(numbers.contents.size())};
    return true;
  }

  const std::string_view bytes_;
  onnx::ModelProto& model_;
  std::map<int, SkippedTensor>& left_out_;
};

}  // namespace

bool ParseModelMessage(std::string_view bytes, onnx::ModelProto& model,
                       std::map<int, SkippedTensor>& left_out) {
  if (ModelParser(bytes, model, left_out).ParseModel()) return true;
  // Groups among unknown fields, which protobuf skips, bring us here too.
  model.Clear();
  left_out.clear();
  return Merge(bytes, kModelDepth, model);
}

}  // namespace ridge
