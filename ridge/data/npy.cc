// Source: numpy/lib/format.py (NEP 1); the dictionary is parsed as Python writes it, with any
// spacing and order.
#include "ridge/data/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "ridge/data/memory_source.h"

namespace ridge {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr int64_t kLongestHeader = 1 << 16;

struct NpyType {
  std::string_view name;
  DType dtype;
};
// The first of a dtype is the one that is written.
constexpr NpyType kTypes[] = {
    {"<f4", DType::kF32}, {"|u1", DType::kU8},  {"<i8", DType::kI64},  {"<f8", DType::kF64},
    {"<f2", DType::kF16}, {"<i4", DType::kI32}, {"|b1", DType::kBool}, {"|i1", DType::kI8},
    {"<i2", DType::kI16}, {"<u2", DType::kU16}, {"<u4", DType::kU32},  {"<u8", DType::kU64},
    {"|?", DType::kBool}, {"<u1", DType::kU8},  {"<i1", DType::kI8},   {"<b1", DType::kBool},
};
// numpy has no name for these: they are written as the type that holds them.
constexpr NpyType kContainers[] = {
    {"|i1", DType::kI4},
    {"|u1", DType::kU4},
    {"|i1", DType::kI2},
    {"|u1", DType::kU2},
};

Status BadNpy(const std::string& where, const std::string& what) {
  return Status(ErrorCode::kInvalidData, where + ": " + what);
}

// The values of the header's dictionary.
struct HeaderValues {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<Dims> shape;
};

// Reads {'key': value, ...}: strings, True, False and tuples of numbers.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  // Nothing when the text is not such a dictionary.
  std::optional<HeaderValues> Parse() {
    if (!Take('{')) return std::nullopt;
    while (!Take('}')) {
      const auto key = ReadString();
      if (!key || !Take(':') || !ReadValue(*key)) return std::nullopt;
      if (!Take(',') && Peek() != '}') return std::nullopt;
    }
    return values_;
  }

 private:
  char Peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool Take(char wanted) {
    if (Peek() != wanted) return false;
    ++at_;
    return true;
  }
  bool TakeWord(std::string_view word) {
    Peek();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  std::optional<std::string> ReadString() {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return std::nullopt;
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }
  bool ReadValue(const std::string& key) {
    if (key == "shape") return (values_.shape = ReadTuple()).has_value();
    if (key == "fortran_order") {
      const bool is_true = TakeWord("True");
      values_.fortran_order = is_true;
      return is_true || TakeWord("False");
    }
    if (key != "descr") return false;
    if (Peek() == '[') return (values_.descr = ReadRecordType()).has_value();
    return (values_.descr = ReadString()).has_value();
  }
  // A list of fields: shown to the user, who must convert it.
  std::optional<std::string> ReadRecordType() {
    const size_t end = text_.rfind(']');
    if (end == std::string_view::npos || end < at_) return std::nullopt;
    std::string value(text_.substr(at_, end + 1 - at_));
    at_ = end + 1;
    return value;
  }
  std::optional<Dims> ReadTuple() {
    Dims dims;
    if (!Take('(')) return std::nullopt;
    while (!Take(')')) {
      Peek();
      int64_t extent = 0;
      const char* end = text_.data() + text_.size();
      const auto [rest, error] = std::from_chars(text_.data() + at_, end, extent);
      if (error != std::errc()) return std::nullopt;
      at_ = static_cast<size_t>(rest - text_.data());
      TakeWord("L");  // Python 2 wrote long integers so
      dims.push_back(extent);
      if (!Take(',') && Peek() != ')') return std::nullopt;
    }
    return dims;
  }

  std::string_view text_;
  size_t at_ = 0;
  HeaderValues values_;
};

Status ReadExactly(ByteStream& stream, void* to, int64_t bytes, const char* what) {
  RIDGE_ASSIGN_OR_RETURN(const int64_t got, stream.Read(to, bytes));
  if (got == bytes) return Status();
  return BadNpy(stream.name(),
                fmt::format("is cut off: {} of {} bytes of {} are there", got, bytes, what));
}

struct HeaderText {
  std::string text;
  int64_t bytes = 0;  // magic string, length and text
};

constexpr int64_t kStartBytes = 8;  // the magic string and the version

// How many bytes tell the length of the header's text.
Result<int64_t> LengthBytes(const std::string& where, std::string_view start) {
  if (start.substr(0, kMagic.size()) != kMagic)
    return BadNpy(where, "is not a .npy array: it does not begin with \\x93NUMPY");
  const int version = static_cast<uint8_t>(start[6]);
  if (version < 1 || version > 3)
    return BadNpy(where, fmt::format("has .npy version {}, should be 1 to 3", version));
  return version == 1 ? 2 : 4;
}

Result<int64_t> ParseLength(const std::string& where, std::string_view bytes) {
  int64_t length = 0;
  for (size_t i = bytes.size(); i-- > 0;) length = length << 8 | static_cast<uint8_t>(bytes[i]);
  if (length <= kLongestHeader) return length;
  return BadNpy(where, fmt::format("declares a .npy header of {} bytes, at most {} are read",
                                   length, kLongestHeader));
}

Result<HeaderText> ReadHeaderText(ByteStream& stream) {
  char start[kStartBytes + 4] = {};
  RIDGE_RETURN_IF_ERROR(ReadExactly(stream, start, kStartBytes, "the .npy header"));
  RIDGE_ASSIGN_OR_RETURN(const int64_t length_bytes,
                         LengthBytes(stream.name(), {start, kStartBytes}));
  RIDGE_RETURN_IF_ERROR(ReadExactly(stream, start + kStartBytes, length_bytes, "the .npy header"));
  RIDGE_ASSIGN_OR_RETURN(
      const int64_t length,
      ParseLength(stream.name(), {start + kStartBytes, static_cast<size_t>(length_bytes)}));
  HeaderText header{std::string(static_cast<size_t>(length), '\0'),
                    kStartBytes + length_bytes + length};
  RIDGE_RETURN_IF_ERROR(ReadExactly(stream, header.text.data(), length, "the .npy header"));
  return header;
}

Result<NpyType> FindType(const std::string& where, const std::string& descr) {
  for (const NpyType& type : kTypes) {
    if (type.name == descr) return type;
  }
  return BadNpy(where,
                fmt::format("has dtype '{}', should be one of little-endian f2 f4 f8 i1 i2 i4 "
                            "i8 u1 u2 u4 u8 b1. hint: array.astype('float32') or .astype('int64')",
                            descr));
}

Result<TensorType> ParseHeader(const std::string& where, const std::string& text) {
  const auto values = HeaderParser(text).Parse();
  if (!values || !values->descr || !values->fortran_order || !values->shape) {
    return BadNpy(where,
                  fmt::format("its .npy header should give descr, fortran_order and shape, it "
                              "is: {}",
                              text.substr(0, 80)));
  }
  RIDGE_ASSIGN_OR_RETURN(const NpyType type, FindType(where, *values->descr));
  if (const Status status = CheckDims(*values->shape); !status.ok())
    return BadNpy(where, "its shape is wrong: " + status.message());
  // With at most one extent above 1 both orders are the same bytes.
  const auto long_dims =
      std::count_if(values->shape->begin(), values->shape->end(), [](int64_t d) { return d > 1; });
  if (*values->fortran_order && long_dims > 1) {
    return BadNpy(
        where, "is in Fortran order, should be in C order. hint: numpy.ascontiguousarray(array)");
  }
  return TensorType{type.dtype, *values->shape};
}

const char* TypeName(DType dtype) {
  for (const NpyType& type : kTypes) {
    if (type.dtype == dtype) return type.name.data();
  }
  for (const NpyType& type : kContainers) {
    if (type.dtype == dtype) return type.name.data();
  }
  RIDGE_CHECK(false, "the type has a name in numpy");
}

}  // namespace

Result<NpyStart> ReadNpyStart(const std::string& where, std::string_view start) {
  const auto cut_off = [&] { return BadNpy(where, "is cut off within its .npy header"); };
  if (start.size() < kStartBytes) return cut_off();
  RIDGE_ASSIGN_OR_RETURN(const int64_t length_bytes, LengthBytes(where, start));
  const int64_t begin = kStartBytes + length_bytes;
  if (static_cast<int64_t>(start.size()) < begin) return cut_off();
  RIDGE_ASSIGN_OR_RETURN(
      const int64_t length,
      ParseLength(where, start.substr(kStartBytes, static_cast<size_t>(length_bytes))));
  if (static_cast<int64_t>(start.size()) < begin + length) return cut_off();
  const std::string text(start.substr(static_cast<size_t>(begin), static_cast<size_t>(length)));
  RIDGE_ASSIGN_OR_RETURN(TensorType type, ParseHeader(where, text));
  return NpyStart{std::move(type), begin + length};
}

Result<Tensor> ReadNpy(ByteStream& stream, int64_t bytes) {
  RIDGE_ASSIGN_OR_RETURN(const HeaderText header, ReadHeaderText(stream));
  RIDGE_ASSIGN_OR_RETURN(const TensorType type, ParseHeader(stream.name(), header.text));
  const int64_t wanted = type.bytes();
  const int64_t held = bytes - header.bytes;
  if (wanted != held || wanted > stream.bound_bytes()) {
    return BadNpy(stream.name(), fmt::format("its header declares {}, {} bytes, but {} follow",
                                             TypeToString(type), wanted, held));
  }
  RIDGE_ASSIGN_OR_RETURN(Tensor tensor, MakeTensor(stream.name(), type));
  RIDGE_RETURN_IF_ERROR(ReadExactly(stream, tensor.mutable_data(), wanted, "elements"));
  RIDGE_RETURN_IF_ERROR(stream.ExpectEnd());
  return tensor;
}

std::string NpyHeader(const TensorType& type) {
  std::string shape;
  for (int64_t extent : type.dims) shape += fmt::format("{}, ", extent);
  if (type.rank() > 1) shape.resize(shape.size() - 2);
  if (type.rank() == 1) shape.resize(shape.size() - 1);
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                 TypeName(type.dtype), shape);
  // Elements begin at a multiple of 64 bytes, counted from the magic string.
  const size_t before = kMagic.size() + 4;
  const size_t padded = (before + text.size() + 1 + 63) / 64 * 64;
  text.resize(padded - before - 1, ' ');
  text += '\n';
  std::string header(kMagic);
  header +=
      {'\1', '\0', static_cast<char>(text.size() & 0xFF), static_cast<char>(text.size() >> 8)};
  return header + text;
}

}  // namespace ridge
