// What the tests of this folder share: TFRecords and tar archives made by hand.
#pragma once
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "ridge/core/crc32c.h"
#include "ridge/core/files.h"
#include "ridge/data/test_files.h"

namespace ridge {

// ---- protobuf

inline std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

// A field of a length and bytes.
inline std::string Part(int number, const std::string& bytes) {
  return Varint(static_cast<uint64_t>(number) << 3 | 2) + Varint(bytes.size()) + bytes;
}

inline std::string Raw(const void* data, size_t bytes) {
  return {static_cast<const char*>(data), bytes};
}

inline std::string BytesFeature(const std::string& value) { return Part(1, Part(1, value)); }

inline std::string FloatFeature(const std::vector<float>& values) {
  return Part(2, Part(1, Raw(values.data(), values.size() * sizeof(float))));
}

inline std::string Int64Feature(const std::vector<int64_t>& values) {
  std::string list;
  for (int64_t value : values) list += Varint(static_cast<uint64_t>(value));
  return Part(3, Part(1, list));
}

using Features = std::vector<std::pair<std::string, std::string>>;

inline std::string Example(const Features& features) {
  std::string map;
  for (const auto& [name, feature] : features) map += Part(1, Part(1, name) + Part(2, feature));
  return Part(1, map);
}

// ---- TFRecord

inline std::string Little32(uint32_t value) { return Raw(&value, sizeof value); }
inline std::string Little64(uint64_t value) { return Raw(&value, sizeof value); }

inline std::string RecordOf(const std::string& bytes) {
  const std::string length = Little64(bytes.size());
  return length + Little32(MaskCrc32c(Crc32c(length))) + bytes +
         Little32(MaskCrc32c(Crc32c(bytes)));
}

inline std::string RecordsOf(const std::vector<std::string>& examples) {
  std::string file;
  for (const std::string& example : examples) file += RecordOf(example);
  return file;
}

// ---- tar

inline std::string Octal(int64_t value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%0*lo", digits, value);
  return text;
}

struct TarHeader {
  std::string name;
  int64_t bytes = 0;
  char type = '0';
  std::string size_field = "";  // instead of bytes in octal
  std::string prefix = "";
};

inline std::string HeaderBlock(const TarHeader& header) {
  std::string block(512, '\0');
  const auto put = [&](size_t at, const std::string& text) {
    block.replace(at, text.size(), text);
  };
  put(0, header.name.substr(0, 100));
  put(100, "0000644");
  put(124, header.size_field.empty() ? Octal(header.bytes, 11) : header.size_field);
  put(136, Octal(0, 11));
  put(156, std::string(1, header.type));
  put(257, std::string("ustar\00000", 8));
  put(345, header.prefix);
  put(148, "        ");
  int64_t sum = 0;
  for (char c : block) sum += static_cast<uint8_t>(c);
  put(148, Octal(sum, 6) + std::string(1, '\0'));
  return block;
}

inline std::string Padded(std::string content) {
  content.resize((content.size() + 511) / 512 * 512, '\0');
  return content;
}

inline std::string Member(const std::string& name, const std::string& content, char type = '0') {
  return HeaderBlock({name, static_cast<int64_t>(content.size()), type}) + Padded(content);
}

inline const std::string& TarEnd() {
  static const std::string end(1024, '\0');
  return end;
}

// ---- all

// A file of tests/golden.
inline std::string GoldenFile(const std::string& name) {
  return *ReadFile(std::string(std::getenv("RIDGE_SOURCE_DIR")) + "/tests/golden/" + name);
}

template <typename T>
std::vector<T> ReadAs(const Source& source, int64_t index, const std::string& field) {
  const int number = source.FindField(field);
  EXPECT_GE(number, 0) << field;
  std::vector<T> values(
      static_cast<size_t>(source.fields()[static_cast<size_t>(number)].type.elements()));
  const Status status = source.ReadOne(index, number, values.data());
  EXPECT_TRUE(status.ok()) << status.message();
  return values;
}

inline std::vector<int64_t> LabelsOf(const Source& source) {
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < source.size(); ++i)
    labels.push_back(ReadAs<int64_t>(source, i, "label")[0]);
  return labels;
}

// "image u8[8,8,3], label i64[]"
inline std::string FieldTexts(const Source& source) {
  std::string text;
  for (const Field& field : source.fields())
    text += (text.empty() ? "" : ", ") + field.name + " " + TypeToString(field.type);
  return text;
}

// A folder whose files are opened as data; in messages it is "DIR".
class ContainerTest : public testing::Test {
 protected:
  std::string Path(const std::string& pattern) { return folder_.File(pattern); }
  void Put(const std::string& path, const std::string& bytes) {
    std::filesystem::create_directories(std::filesystem::path(Path(path)).parent_path());
    folder_.Write(path, bytes);
  }
  Result<DataSplits> Open(const std::string& kind, const std::string& argument,
                          double hold_out = 0) {
    DataOptions options;
    options.model_inputs = {{"image", {DType::kF32, {3, 8, 8}}}, {"label", {DType::kI64, {}}, 10}};
    options.hold_out = hold_out;
    return OpenData(kind + ":" + Path(argument), options);
  }
  std::string Plain(std::string text) {
    for (size_t at = 0; (at = text.find(folder_.path())) != std::string::npos;)
      text.replace(at, folder_.path().size(), "DIR");
    return text;
  }

  TempFolder folder_;
};

}  // namespace ridge
