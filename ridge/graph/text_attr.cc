// Numbers go through from_chars and fmt, never through the locale.  Nothing is allocated by a
// size that the text only claims: elements are counted before the tensor is made.
#include "ridge/graph/text_attr.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "ridge/graph/base64.h"
#include "ridge/graph/text.h"
#include "ridge/graph/text_parse.h"

namespace ridge {
namespace {

using Kind = Token::Kind;

constexpr int64_t kMostPrintedElements = 64;

// A point makes it a float where the reader has no other way to tell.
std::string WithPoint(std::string digits) {
  return digits.find_first_of(".e") == std::string::npos ? digits + ".0" : digits;
}

std::string PrintElement(const Tensor& tensor, int64_t i) {
  const DType dtype = tensor.type().dtype;
  if (dtype == DType::kI64) return fmt::format("{}", tensor.as<int64_t>()[i]);
  const double value = tensor.at(i);
  if (dtype == DType::kU64) return fmt::format("{}", tensor.as<uint64_t>()[i]);
  if (IsInteger(dtype) || dtype == DType::kBool)
    return fmt::format("{}", static_cast<int64_t>(value));
  if (dtype == DType::kF64 || !std::isfinite(value)) return PrintNumber(value);
  return WithPoint(fmt::format("{}", static_cast<float>(value)));
}

// Integers are read as i64.
bool HoldsSignedNumbers(const Tensor& tensor) {
  const std::span<const uint64_t> all(tensor.as<uint64_t>(),
                                      static_cast<size_t>(tensor.elements()));
  return std::all_of(all.begin(), all.end(), [](uint64_t v) { return v >> 63 == 0; });
}

// Whether every element reads back with the same bits from its number: not so for a NaN that is
// not the usual one.
bool NumbersKeepBits(const Tensor& tensor) {
  if (tensor.type().dtype == DType::kU64) return HoldsSignedNumbers(tensor);
  if (IsInteger(tensor.type().dtype) || tensor.type().dtype == DType::kBool) return true;
  Tensor again(tensor.type());
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const double value =
        std::isnan(tensor.at(i)) ? std::numeric_limits<double>::quiet_NaN() : tensor.at(i);
    StoreFromDouble(tensor.type().dtype, again.mutable_data(), i, value);
  }
  return again.same_bits(tensor);
}

template <typename T>
std::string PrintList(const std::vector<T>& list) {
  std::string out = "[";
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out += ",";
    if constexpr (std::is_same_v<T, double>) {
      out += PrintNumber(list[i]);
    } else {
      out += fmt::format("{}", list[i]);
    }
  }
  return out + "]";
}

struct AttrPrinter {
  std::string operator()(int64_t v) const { return fmt::format("{}", v); }
  std::string operator()(double v) const { return PrintNumber(v); }
  std::string operator()(const std::string& v) const { return QuoteString(v); }
  std::string operator()(const std::vector<int64_t>& v) const { return PrintList(v); }
  std::string operator()(const std::vector<double>& v) const { return PrintList(v); }
  std::string operator()(const Tensor& v) const {
    return fmt::format("tensor {} {}", TypeToString(v.type()), PrintTensorValues(v, "[", "]"));
  }
  std::string operator()(const std::shared_ptr<const Graph>& v) const {
    return v == nullptr ? "{}" : "{\n" + PrintGraph(*v) + "}";
  }
};

bool IsNumberToken(const Token& token) {
  return token.kind == Kind::kInteger || token.kind == Kind::kFloat ||
         (token.kind == Kind::kName && (token.text == "inf" || token.text == "nan" ||
                                        token.text == "true" || token.text == "false"));
}

Result<int64_t> IntegerOf(const TokenReader& reader, const Token& token) {
  if (token.text == "true" || token.text == "false") return token.text == "true" ? 1 : 0;
  int64_t value = 0;
  const char* end = token.text.data() + token.text.size();
  if (std::from_chars(token.text.data(), end, value).ec == std::errc()) return value;
  return reader.ErrorAt(token.line, DescribeToken(token) + " does not fit 64 bits");
}

// [1,2] or [0.5,1.0]; one float makes all floats.
Result<Attr> ReadList(TokenReader& reader) {
  RIDGE_RETURN_IF_ERROR(reader.ExpectSymbol('[', "before a list"));
  std::vector<int64_t> integers;
  std::vector<double> numbers;
  bool whole = true;
  while (!reader.at_symbol(']')) {
    if (!numbers.empty()) RIDGE_RETURN_IF_ERROR(reader.ExpectSymbol(',', "or ']' in a list"));
    const Token token = reader.peek();
    whole = whole && token.kind == Kind::kInteger;
    if (whole) {
      RIDGE_ASSIGN_OR_RETURN(const int64_t integer, IntegerOf(reader, token));
      integers.push_back(integer);
    }
    RIDGE_ASSIGN_OR_RETURN(const double number, ReadNumber(reader, "a number"));
    numbers.push_back(number);
  }
  RIDGE_RETURN_IF_ERROR(reader.ExpectSymbol(']', "after a list"));
  if (whole) return Attr(std::move(integers));
  return Attr(std::move(numbers));
}

Result<Attr> ReadTensorAttr(TokenReader& reader) {
  reader.Take();  // the word tensor
  RIDGE_ASSIGN_OR_RETURN(const TensorType type, ReadType(reader));
  RIDGE_ASSIGN_OR_RETURN(Tensor tensor, ReadTensorValues(reader, type));
  return Attr(std::move(tensor));
}

Result<Attr> ReadSubgraph(TokenReader& reader, int depth) {
  RIDGE_RETURN_IF_ERROR(reader.ExpectSymbol('{', "before a subgraph"));
  if (reader.TakeSymbol('}')) return Attr(std::shared_ptr<const Graph>());
  if (depth >= kDeepestGraph) {
    return reader.Error(fmt::format("subgraphs are nested more than {} deep", kDeepestGraph));
  }
  RIDGE_ASSIGN_OR_RETURN(Graph graph, ReadGraph(reader, depth + 1));
  RIDGE_RETURN_IF_ERROR(reader.ExpectSymbol('}', "after a subgraph"));
  return Attr(std::make_shared<const Graph>(std::move(graph)));
}

// Exact for every i64, and checked against the dtype's range.
Status StoreInteger(TokenReader& reader, const TensorType& type, const Token& token, void* data,
                    int64_t i) {
  if (token.kind == Kind::kFloat || token.text == "nan" || token.text == "inf") {
    return reader.ErrorAt(token.line, fmt::format("{} is not an integer; the type is {}",
                                                  DescribeToken(token), TypeToString(type)));
  }
  RIDGE_ASSIGN_OR_RETURN(const int64_t value, IntegerOf(reader, token));
  if (type.dtype == DType::kI64) {
    static_cast<int64_t*>(data)[i] = value;
    return Status();
  }
  if (type.dtype == DType::kU64 && value >= 0) {
    static_cast<uint64_t*>(data)[i] = static_cast<uint64_t>(value);
    return Status();
  }
  StoreFromDouble(type.dtype, data, i, static_cast<double>(value));
  if (static_cast<int64_t>(LoadAsDouble(type.dtype, data, i)) == value) return Status();
  return reader.ErrorAt(
      token.line, fmt::format("{} does not fit {}", DescribeToken(token), DTypeName(type.dtype)));
}

Result<double> NumberOf(const TokenReader& reader, const Token& token) {
  if (token.text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (token.text == "inf") return std::numeric_limits<double>::infinity();
  if (token.text == "-inf") return -std::numeric_limits<double>::infinity();
  if (token.text == "true" || token.text == "false") return token.text == "true" ? 1.0 : 0.0;
  double value = 0;
  const char* end = token.text.data() + token.text.size();
  const auto [rest, error] = std::from_chars(token.text.data(), end, value);
  if (error == std::errc() && rest == end) return value;
  return reader.ErrorAt(token.line, DescribeToken(token) + " is not a number that f64 can hold");
}

Status StoreElement(TokenReader& reader, const TensorType& type, const Token& token, void* data,
                    int64_t i) {
  if (IsInteger(type.dtype) || type.dtype == DType::kBool)
    return StoreInteger(reader, type, token, data, i);
  RIDGE_ASSIGN_OR_RETURN(const double value, NumberOf(reader, token));
  StoreFromDouble(type.dtype, data, i, value);
  return Status();
}

Result<Tensor> MakeTensor(TokenReader& reader, const TensorType& type,
                          const std::vector<Token>& values) {
  if (type.elements() != static_cast<int64_t>(values.size())) {
    return reader.Error(fmt::format("{} values are given; {} has {} elements", values.size(),
                                    TypeToString(type), type.elements()));
  }
  Tensor tensor(type);
  for (size_t i = 0; i < values.size(); ++i) {
    RIDGE_RETURN_IF_ERROR(
        StoreElement(reader, type, values[i], tensor.mutable_data(), static_cast<int64_t>(i)));
  }
  return tensor;
}

Status RequireEnd(const TokenReader& reader, std::string_view what) {
  if (reader.peek().kind == Kind::kEnd) return Status();
  return reader.Error(
      fmt::format("expected nothing after {}, found {}", what, DescribeToken(reader.peek())));
}

}  // namespace

std::string PrintNumber(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return WithPoint(fmt::format("{}", value));
}

std::string PrintAttr(const Attr& attr) { return std::visit(AttrPrinter{}, attr); }

std::string PrintTensorValues(const Tensor& tensor, std::string_view open, std::string_view close) {
  if (tensor.elements() > kMostPrintedElements || !NumbersKeepBits(tensor)) {
    const std::span bytes(tensor.as<uint8_t>(), static_cast<size_t>(tensor.bytes()));
    return fmt::format("base64(\"{}\")", EncodeBase64(bytes));
  }
  std::string out(open);
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (i > 0) out += ", ";
    out += PrintElement(tensor, i);
  }
  return out += close;
}

Result<Attr> ParseAttr(std::string_view text) {
  TokenReader reader(text, "");
  RIDGE_ASSIGN_OR_RETURN(Attr attr, ReadAttr(reader, 0));
  RIDGE_RETURN_IF_ERROR(RequireEnd(reader, "the attribute"));
  return attr;
}

Result<TensorType> ParseType(std::string_view text) {
  TokenReader reader(text, "");
  RIDGE_ASSIGN_OR_RETURN(TensorType type, ReadType(reader));
  RIDGE_RETURN_IF_ERROR(RequireEnd(reader, "the type"));
  return type;
}

Result<Attr> ReadAttr(TokenReader& reader, int depth) {
  if (reader.at_symbol('[')) return ReadList(reader);
  if (reader.at_symbol('{')) return ReadSubgraph(reader, depth);
  if (reader.at_name("tensor")) return ReadTensorAttr(reader);
  const Token& token = reader.peek();
  if (token.kind == Kind::kString) {
    RIDGE_ASSIGN_OR_RETURN(std::string text, reader.ExpectString("a text"));
    return Attr(std::move(text));
  }
  if (token.kind == Kind::kInteger || token.text == "true" || token.text == "false") {
    RIDGE_ASSIGN_OR_RETURN(const int64_t integer, ReadInteger(reader, "an integer"));
    return Attr(integer);
  }
  RIDGE_ASSIGN_OR_RETURN(const double number, ReadNumber(reader, "a value"));
  return Attr(number);
}

Result<double> ReadNumber(TokenReader& reader, std::string_view what) {
  if (!IsNumberToken(reader.peek())) {
    return reader.Error(fmt::format("expected {}, found {}", what, DescribeToken(reader.peek())));
  }
  RIDGE_ASSIGN_OR_RETURN(const double value, NumberOf(reader, reader.peek()));
  reader.Take();
  return value;
}

Result<int64_t> ReadInteger(TokenReader& reader, std::string_view what) {
  const Token token = reader.peek();
  const bool word = token.kind == Kind::kName && (token.text == "true" || token.text == "false");
  if (token.kind != Kind::kInteger && !word) {
    return reader.Error(fmt::format("expected {}, found {}", what, DescribeToken(token)));
  }
  RIDGE_ASSIGN_OR_RETURN(const int64_t value, IntegerOf(reader, token));
  reader.Take();
  return value;
}

Result<DType> ReadDType(TokenReader& reader) {
  const Token token = reader.peek();
  const std::optional<DType> dtype =
      token.kind == Kind::kName ? ParseDType(token.text) : std::nullopt;
  if (!dtype) {
    return reader.Error(
        fmt::format("expected a type such as f32[2,3], found {}; element types: f64 f32 f16 bf16 "
                    "i64 i32 u8 i8 bool",
                    DescribeToken(token)));
  }
  reader.Take();
  return *dtype;
}

Result<std::vector<TextDim>> ReadDims(TokenReader& reader) {
  RIDGE_RETURN_IF_ERROR(reader.ExpectSymbol('[', "after the element type"));
  std::vector<TextDim> dims;
  while (!reader.at_symbol(']')) {
    if (!dims.empty()) RIDGE_RETURN_IF_ERROR(reader.ExpectSymbol(',', "or ']' in a shape"));
    TextDim& dim = dims.emplace_back();
    if (reader.peek().kind != Kind::kInteger) {
      RIDGE_ASSIGN_OR_RETURN(dim.name, reader.ExpectName("an extent or a dimension's name"));
      if (!reader.TakeSymbol('=')) continue;
    }
    RIDGE_ASSIGN_OR_RETURN(dim.extent, ReadInteger(reader, "an extent"));
  }
  RIDGE_RETURN_IF_ERROR(reader.ExpectSymbol(']', "after a shape"));
  return dims;
}

Result<TensorType> ReadType(TokenReader& reader) {
  RIDGE_ASSIGN_OR_RETURN(const DType dtype, ReadDType(reader));
  const int line = reader.peek().line;
  RIDGE_ASSIGN_OR_RETURN(const std::vector<TextDim> dims, ReadDims(reader));
  TensorType type{dtype, {}};
  for (const TextDim& dim : dims) {
    if (!dim.name.empty()) {
      return reader.ErrorAt(line, fmt::format("the dimension '{}' is named; only the dimensions "
                                              "of an input have names",
                                              dim.name));
    }
    type.dims.push_back(*dim.extent);
  }
  if (Status status = CheckDims(type.dims); !status.ok()) {
    return reader.ErrorAt(line, status.message());
  }
  return type;
}

Result<Tensor> ReadTensorValues(TokenReader& reader, const TensorType& type) {
  if (reader.at_name("base64")) {
    reader.Take();
    return ReadTensorBase64(reader, type);
  }
  if (reader.TakeSymbol('[')) return ReadTensorList(reader, type, ']');
  if (!IsNumberToken(reader.peek())) {
    return reader.Error(fmt::format("expected the values of {}, such as [1.0, 2.0], found {}",
                                    TypeToString(type), DescribeToken(reader.peek())));
  }
  const std::vector<Token> one{reader.Take()};
  return MakeTensor(reader, type, one);
}

Result<Tensor> ReadTensorList(TokenReader& reader, const TensorType& type, char close) {
  std::vector<Token> values;
  while (!reader.at_symbol(close)) {
    if (!values.empty()) RIDGE_RETURN_IF_ERROR(reader.ExpectSymbol(',', "between values"));
    if (!IsNumberToken(reader.peek())) {
      return reader.Error("expected a number, found " + DescribeToken(reader.peek()));
    }
    values.push_back(reader.Take());
  }
  RIDGE_ASSIGN_OR_RETURN(Tensor tensor, MakeTensor(reader, type, values));
  reader.Take();
  return tensor;
}

Result<Tensor> ReadTensorBase64(TokenReader& reader, const TensorType& type) {
  RIDGE_RETURN_IF_ERROR(reader.ExpectSymbol('(', "after base64"));
  RIDGE_ASSIGN_OR_RETURN(const std::string text, reader.ExpectString("base64 digits"));
  const std::optional<std::vector<uint8_t>> bytes = DecodeBase64(text);
  if (!bytes) return reader.Error("the text in base64(...) is not base64");
  if (static_cast<int64_t>(bytes->size()) != type.bytes()) {
    return reader.Error(fmt::format("base64 holds {} bytes; {} has {}", bytes->size(),
                                    TypeToString(type), type.bytes()));
  }
  RIDGE_RETURN_IF_ERROR(reader.ExpectSymbol(')', "after base64 digits"));
  Tensor tensor(type);
  if (!bytes->empty()) std::memcpy(tensor.mutable_data(), bytes->data(), bytes->size());
  return tensor;
}

}  // namespace ridge
