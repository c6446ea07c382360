// Parquet files by Arrow's library: the functions of ridge/data/container/parquet_abi.h.
//
// A row group is decoded as a whole into Arrow's arrays; a column of it is then written as plain
// arrays of one type.  Nothing that Arrow throws or returns leaves these functions but as text.
#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/util/config.h>
#include <arrow/util/io_util.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ridge/data/container/parquet_abi.h"

namespace {

constexpr int64_t kMostRows = int64_t{1} << 31;  // of a row group
constexpr int kMostColumns = 1 << 16;
constexpr int64_t kOfRow = 1 + 8;  // bytes: whether it is there; its number or offset

// Refuses what a hostile file asks for.
class CappedPool final : public arrow::MemoryPool {
 public:
  explicit CappedPool(int64_t most_bytes) : most_(most_bytes) {}

  using arrow::MemoryPool::Allocate;
  using arrow::MemoryPool::Free;
  using arrow::MemoryPool::Reallocate;
  arrow::Status Allocate(int64_t size, int64_t alignment, uint8_t** out) override {
    ARROW_RETURN_NOT_OK(Check(size));
    return pool_->Allocate(size, alignment, out);
  }
  arrow::Status Reallocate(int64_t old_size, int64_t new_size, int64_t alignment,
                           uint8_t** bytes) override {
    ARROW_RETURN_NOT_OK(Check(new_size - old_size));
    return pool_->Reallocate(old_size, new_size, alignment, bytes);
  }
  void Free(uint8_t* bytes, int64_t size, int64_t alignment) override {
    pool_->Free(bytes, size, alignment);
  }
  int64_t bytes_allocated() const override { return pool_->bytes_allocated(); }
  int64_t total_bytes_allocated() const override { return pool_->total_bytes_allocated(); }
  int64_t num_allocations() const override { return pool_->num_allocations(); }
  std::string backend_name() const override { return pool_->backend_name(); }

 private:
  arrow::Status Check(int64_t more) const {
    if (more <= most_ - pool_->bytes_allocated()) return arrow::Status::OK();
    return arrow::Status::OutOfMemory("asks for ", more, " bytes more; ", most_, " are allowed");
  }

  const int64_t most_;
  arrow::MemoryPool* pool_ = arrow::default_memory_pool();
};

// What a column becomes.
struct Plain {
  std::vector<uint8_t> valid;
  std::vector<int64_t> integers;
  std::vector<double> floats;
  std::vector<int64_t> offsets;
  std::string bytes;
  int64_t most_bytes = std::numeric_limits<int64_t>::max();

  int64_t held() const {
    return static_cast<int64_t>(valid.size() + bytes.size() +
                                8 * (integers.size() + floats.size() + offsets.size()));
  }
  // Before `more` bytes are added.  A dictionary or a run of equal values is small in its file.
  arrow::Status Check(int64_t more) const {
    if (more <= most_bytes - held()) return arrow::Status::OK();
    return arrow::Status::OutOfMemory("becomes more than ", most_bytes, " bytes");
  }
};

int32_t ScalarKind(const arrow::DataType& type) {
  using arrow::Type;
  if (type.id() == Type::BOOL) return RIDGE_PARQUET_BOOLEANS;
  if (arrow::is_integer(type.id())) return RIDGE_PARQUET_INTEGERS;
  if (arrow::is_floating(type.id())) return RIDGE_PARQUET_FLOATS;
  if (type.id() == Type::DECIMAL128 || type.id() == Type::DECIMAL256) return RIDGE_PARQUET_FLOATS;
  if (type.id() == Type::STRING || type.id() == Type::LARGE_STRING) return RIDGE_PARQUET_TEXTS;
  const bool bytes = type.id() == Type::BINARY || type.id() == Type::LARGE_BINARY ||
                     type.id() == Type::FIXED_SIZE_BINARY;
  return bytes ? RIDGE_PARQUET_BYTES : RIDGE_PARQUET_OTHER;
}

int32_t KindOf(const arrow::DataType& type) {
  using arrow::Type;
  if (type.id() == Type::DICTIONARY)
    return ScalarKind(*static_cast<const arrow::DictionaryType&>(type).value_type());
  if (type.id() == Type::STRUCT) {
    const auto field = static_cast<const arrow::StructType&>(type).GetFieldByName("bytes");
    const bool bytes = field != nullptr && ScalarKind(*field->type()) == RIDGE_PARQUET_BYTES;
    return bytes ? RIDGE_PARQUET_BYTES : RIDGE_PARQUET_OTHER;
  }
  const bool list = type.id() == Type::LIST || type.id() == Type::LARGE_LIST ||
                    type.id() == Type::FIXED_SIZE_LIST;
  if (!list) return ScalarKind(type);
  const int32_t element = ScalarKind(*type.field(0)->type());
  if (element == RIDGE_PARQUET_INTEGERS || element == RIDGE_PARQUET_BOOLEANS)
    return RIDGE_PARQUET_INTEGER_LISTS;
  return element == RIDGE_PARQUET_FLOATS ? RIDGE_PARQUET_FLOAT_LISTS : RIDGE_PARQUET_OTHER;
}

arrow::Status Wrong(const arrow::Array& array) {
  return arrow::Status::TypeError("is of type ", array.type()->ToString());
}

// Calls add(value) for each element: null where it has none.
template <typename Array, typename Add>
void ForEach(const arrow::Array& array, const Add& add) {
  const auto& typed = static_cast<const Array&>(array);
  using Value = decltype(typed.GetView(0));
  for (int64_t i = 0; i < typed.length(); ++i)
    add(typed.IsNull(i) ? std::optional<Value>() : std::optional<Value>(typed.GetView(i)));
}

template <typename Array>
void AddIntegers(const arrow::Array& array, Plain& out) {
  ForEach<Array>(array, [&](const auto& value) {
    out.valid.push_back(value.has_value());
    out.integers.push_back(value ? static_cast<int64_t>(*value) : 0);
  });
}

// More than 2^63 - 1 is no int64.
arrow::Status AddUnsigned(const arrow::Array& array, Plain& out) {
  bool fits = true;
  ForEach<arrow::UInt64Array>(array, [&](const auto& value) {
    fits = fits && (!value || *value <= uint64_t{INT64_MAX});
    out.valid.push_back(value.has_value());
    out.integers.push_back(value ? static_cast<int64_t>(*value) : 0);
  });
  return fits ? arrow::Status::OK() : arrow::Status::Invalid("has an integer above 2^63 - 1");
}

template <typename Array>
void AddFloats(const arrow::Array& array, Plain& out) {
  ForEach<Array>(array, [&](const auto& value) {
    out.valid.push_back(value.has_value());
    out.floats.push_back(value ? static_cast<double>(*value)
                               : std::numeric_limits<double>::quiet_NaN());
  });
}

double FromHalf(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1F;
  const double fraction = bits & 0x3FF, sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0x1F)
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  return sign * (exponent == 0 ? std::ldexp(fraction, -24)
                               : std::ldexp(fraction + 1024, exponent - 25));
}

void AddHalves(const arrow::Array& array, Plain& out) {
  ForEach<arrow::HalfFloatArray>(array, [&](const auto& value) {
    out.valid.push_back(value.has_value());
    out.floats.push_back(value ? FromHalf(*value) : std::nan(""));
  });
}

template <typename Array>
void AddDecimals(const arrow::Array& array, Plain& out) {
  const auto& typed = static_cast<const Array&>(array);
  for (int64_t i = 0; i < typed.length(); ++i) {
    const bool valid = !typed.IsNull(i);
    out.valid.push_back(valid);
    out.floats.push_back(valid ? std::strtod(typed.FormatValue(i).c_str(), nullptr) : std::nan(""));
  }
}

// Their bytes lie in the array already, so they fit where it does.
template <typename Array>
void AddBytes(const arrow::Array& array, Plain& out) {
  if (out.offsets.empty()) out.offsets.push_back(0);
  ForEach<Array>(array, [&](const auto& value) {
    out.valid.push_back(value.has_value());
    if (value) out.bytes += *value;
    out.offsets.push_back(static_cast<int64_t>(out.bytes.size()));
  });
}

arrow::Status AddNumbers(const arrow::Array& array, Plain& out) {
  using arrow::Type;
  ARROW_RETURN_NOT_OK(out.Check(kOfRow * (array.length() + 1)));
  switch (array.type_id()) {
    case Type::BOOL:
      return AddIntegers<arrow::BooleanArray>(array, out), arrow::Status::OK();
    case Type::INT8:
      return AddIntegers<arrow::Int8Array>(array, out), arrow::Status::OK();
    case Type::INT16:
      return AddIntegers<arrow::Int16Array>(array, out), arrow::Status::OK();
    case Type::INT32:
      return AddIntegers<arrow::Int32Array>(array, out), arrow::Status::OK();
    case Type::INT64:
      return AddIntegers<arrow::Int64Array>(array, out), arrow::Status::OK();
    case Type::UINT8:
      return AddIntegers<arrow::UInt8Array>(array, out), arrow::Status::OK();
    case Type::UINT16:
      return AddIntegers<arrow::UInt16Array>(array, out), arrow::Status::OK();
    case Type::UINT32:
      return AddIntegers<arrow::UInt32Array>(array, out), arrow::Status::OK();
    case Type::UINT64:
      return AddUnsigned(array, out);
    case Type::HALF_FLOAT:
      return AddHalves(array, out), arrow::Status::OK();
    case Type::FLOAT:
      return AddFloats<arrow::FloatArray>(array, out), arrow::Status::OK();
    case Type::DOUBLE:
      return AddFloats<arrow::DoubleArray>(array, out), arrow::Status::OK();
    case Type::DECIMAL128:
      return AddDecimals<arrow::Decimal128Array>(array, out), arrow::Status::OK();
    case Type::DECIMAL256:
      return AddDecimals<arrow::Decimal256Array>(array, out), arrow::Status::OK();
    default:
      return Wrong(array);
  }
}

arrow::Status AddScalars(const arrow::Array& array, Plain& out) {
  using arrow::Type;
  ARROW_RETURN_NOT_OK(out.Check(kOfRow * (array.length() + 1)));
  switch (array.type_id()) {
    case Type::STRING:
      return AddBytes<arrow::StringArray>(array, out), arrow::Status::OK();
    case Type::LARGE_STRING:
      return AddBytes<arrow::LargeStringArray>(array, out), arrow::Status::OK();
    case Type::BINARY:
      return AddBytes<arrow::BinaryArray>(array, out), arrow::Status::OK();
    case Type::LARGE_BINARY:
      return AddBytes<arrow::LargeBinaryArray>(array, out), arrow::Status::OK();
    case Type::FIXED_SIZE_BINARY:
      return AddBytes<arrow::FixedSizeBinaryArray>(array, out), arrow::Status::OK();
    default:
      return AddNumbers(array, out);
  }
}

arrow::Status AddDictionary(const arrow::DictionaryArray& array, Plain& out) {
  Plain values;
  values.most_bytes = out.most_bytes;
  ARROW_RETURN_NOT_OK(AddScalars(*array.dictionary(), values));
  ARROW_RETURN_NOT_OK(out.Check(kOfRow * (array.length() + 1)));
  const auto count = static_cast<int64_t>(values.valid.size());
  if (!values.offsets.empty() && out.offsets.empty()) out.offsets.push_back(0);
  for (int64_t i = 0; i < array.length(); ++i) {
    const int64_t at = array.IsNull(i) ? -1 : array.GetValueIndex(i);
    if (at >= count || (at < 0 && !array.IsNull(i)))
      return arrow::Status::Invalid("index ", at, " is beyond its dictionary of ", count);
    const auto k = static_cast<size_t>(at);
    const bool valid = at >= 0 && values.valid[k] != 0;
    out.valid.push_back(valid);
    if (!values.integers.empty()) out.integers.push_back(valid ? values.integers[k] : 0);
    if (!values.floats.empty()) out.floats.push_back(valid ? values.floats[k] : std::nan(""));
    if (values.offsets.empty()) continue;
    if (valid) {
      const int64_t length = values.offsets[k + 1] - values.offsets[k];
      ARROW_RETURN_NOT_OK(out.Check(length));
      out.bytes.append(values.bytes, static_cast<size_t>(values.offsets[k]),
                       static_cast<size_t>(length));
    }
    out.offsets.push_back(static_cast<int64_t>(out.bytes.size()));
  }
  return arrow::Status::OK();
}

template <typename List>
arrow::Status AddLists(const arrow::Array& array, Plain& out) {
  const auto& lists = static_cast<const List&>(array);
  if (out.offsets.empty()) out.offsets.push_back(0);
  for (int64_t i = 0; i < lists.length(); ++i) {
    const bool valid = !lists.IsNull(i);
    out.valid.push_back(valid);
    Plain elements;
    elements.most_bytes = out.most_bytes;
    ARROW_RETURN_NOT_OK(out.Check(kOfRow));
    if (valid) ARROW_RETURN_NOT_OK(AddNumbers(*lists.value_slice(i), elements));
    for (const uint8_t is : elements.valid) {
      if (is == 0) return arrow::Status::Invalid("an element of the list in row ", i, " is null");
    }
    ARROW_RETURN_NOT_OK(out.Check(elements.held()));
    out.integers.insert(out.integers.end(), elements.integers.begin(), elements.integers.end());
    out.floats.insert(out.floats.end(), elements.floats.begin(), elements.floats.end());
    out.offsets.push_back(out.offsets.back() + static_cast<int64_t>(elements.valid.size()));
  }
  return arrow::Status::OK();
}

arrow::Status AddStruct(const arrow::StructArray& array, Plain& out) {
  const auto bytes = array.GetFieldByName("bytes");
  if (bytes == nullptr) return Wrong(array);
  const size_t first = out.valid.size();
  ARROW_RETURN_NOT_OK(AddScalars(*bytes, out));
  for (int64_t i = 0; i < array.length(); ++i)
    if (array.IsNull(i)) out.valid[first + static_cast<size_t>(i)] = 0;
  return arrow::Status::OK();
}

arrow::Status AddArray(const arrow::Array& array, Plain& out) {
  using arrow::Type;
  switch (array.type_id()) {
    case Type::DICTIONARY:
      return AddDictionary(static_cast<const arrow::DictionaryArray&>(array), out);
    case Type::LIST:
      return AddLists<arrow::ListArray>(array, out);
    case Type::LARGE_LIST:
      return AddLists<arrow::LargeListArray>(array, out);
    case Type::FIXED_SIZE_LIST:
      return AddLists<arrow::FixedSizeListArray>(array, out);
    case Type::STRUCT:
      return AddStruct(static_cast<const arrow::StructArray&>(array), out);
    default:
      return AddScalars(array, out);
  }
}

struct File {
  explicit File(int64_t most) : most_bytes(most), pool(*new CappedPool(most)) {}

  const int64_t most_bytes;

  // Lives as long as the program: a thread of Arrow may give a buffer back after the file is closed.
  CappedPool& pool;
  std::unique_ptr<parquet::arrow::FileReader> reader;
  std::shared_ptr<arrow::Schema> schema;
  std::vector<std::string> types;
  std::shared_ptr<arrow::Table> table;  // the row group that is loaded
  std::vector<Plain> columns;           // of it
};

// A file whose failing reads say at which byte; Arrow's message has none.
class NamedReads final : public arrow::io::RandomAccessFile {
 public:
  explicit NamedReads(std::shared_ptr<arrow::io::ReadableFile> file) : file_(std::move(file)) {}

  arrow::Status Close() override { return file_->Close(); }
  bool closed() const override { return file_->closed(); }
  arrow::Result<int64_t> GetSize() override { return file_->GetSize(); }
  arrow::Result<int64_t> Tell() const override { return file_->Tell(); }
  arrow::Status Seek(int64_t position) override { return file_->Seek(position); }
  arrow::Result<int64_t> Read(int64_t count, void* to) override {
    ARROW_ASSIGN_OR_RAISE(const int64_t position, file_->Tell());
    return Named(file_->Read(count, to), position);
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t count) override {
    ARROW_ASSIGN_OR_RAISE(const int64_t position, file_->Tell());
    return Named(file_->Read(count), position);
  }
  arrow::Result<int64_t> ReadAt(int64_t position, int64_t count, void* to) override {
    return Named(file_->ReadAt(position, count, to), position);
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(int64_t position, int64_t count) override {
    return Named(file_->ReadAt(position, count), position);
  }

 private:
  template <typename T>
  static arrow::Result<T> Named(arrow::Result<T> read, int64_t position) {
    if (read.ok() || !read.status().IsIOError()) return read;
    const int error = arrow::internal::ErrnoFromStatus(read.status());
    return read.status().WithMessage("cannot be read at byte ", position, ": ",
                                     error != 0 ? std::string(std::strerror(error)) : read.status().message());
  }

  const std::shared_ptr<arrow::io::ReadableFile> file_;
};

arrow::Status OpenFile(const char* path, File& file) {
  ARROW_ASSIGN_OR_RAISE(auto opened, arrow::io::ReadableFile::Open(path, &file.pool));
  const auto input = std::make_shared<NamedReads>(std::move(opened));
  parquet::arrow::FileReaderBuilder builder;
  ARROW_RETURN_NOT_OK(builder.Open(input, parquet::ReaderProperties(&file.pool)));
  parquet::ArrowReaderProperties properties = parquet::default_arrow_reader_properties();
  properties.set_use_threads(false);
  properties.set_pre_buffer(false);
  builder.memory_pool(&file.pool)->properties(properties);
  ARROW_ASSIGN_OR_RAISE(file.reader, builder.Build());
  ARROW_RETURN_NOT_OK(file.reader->GetSchema(&file.schema));
  if (file.schema->num_fields() > kMostColumns)
    return arrow::Status::Invalid("has more than ", kMostColumns, " columns");
  for (const auto& field : file.schema->fields()) file.types.push_back(field->type()->ToString());
  const auto metadata = file.reader->parquet_reader()->metadata();
  for (int i = 0; i < metadata->num_row_groups(); ++i) {
    const int64_t rows = metadata->RowGroup(i)->num_rows();
    if (rows < 0 || rows > kMostRows)
      return arrow::Status::Invalid("row group ", i, " has ", rows, " rows; 0 to ", kMostRows,
                                    " are read");
  }
  return arrow::Status::OK();
}

arrow::Status LoadGroup(File& file, int32_t group) {
  file.columns.clear();
  file.table.reset();
  ARROW_ASSIGN_OR_RAISE(file.table, file.reader->ReadRowGroup(group));
  const int64_t rows = file.reader->parquet_reader()->metadata()->RowGroup(group)->num_rows();
  if (file.table->num_rows() != rows)
    return arrow::Status::Invalid("has ", file.table->num_rows(), " rows; it says ", rows);
  ARROW_RETURN_NOT_OK(file.table->Validate());
  file.columns.resize(static_cast<size_t>(file.table->num_columns()));
  return arrow::Status::OK();
}

arrow::Status FillChunk(File& file, int32_t column, RidgeParquetChunk& chunk) {
  if (file.table == nullptr || column >= file.table->num_columns())
    return arrow::Status::Invalid("no row group is loaded");
  Plain& plain = file.columns[static_cast<size_t>(column)];
  if (plain.valid.empty()) {
    Plain filled;
    filled.most_bytes = file.most_bytes;
    for (const Plain& other : file.columns) filled.most_bytes -= other.held();
    for (const auto& array : file.table->column(column)->chunks()) {
      ARROW_RETURN_NOT_OK(array->ValidateFull());
      ARROW_RETURN_NOT_OK(AddArray(*array, filled));
    }
    plain = std::move(filled);
  }
  chunk = {static_cast<int64_t>(plain.valid.size()), plain.valid.data(), plain.integers.data(),
           plain.floats.data(), plain.offsets.data(), plain.bytes.data()};
  return arrow::Status::OK();
}

// On one line; Thrift's messages have several.
void Say(std::string text, char* error, int64_t error_bytes) {
  if (error_bytes <= 0) return;
  text.erase(text.find_last_not_of("\n ") + 1);
  std::replace(text.begin(), text.end(), '\n', ' ');
  const auto length = std::min<size_t>(text.size(), static_cast<size_t>(error_bytes) - 1);
  std::memcpy(error, text.data(), length);
  error[length] = '\0';
}

// Runs `body`, which returns a status or throws.
template <typename Body>
int32_t Guarded(char* error, int64_t error_bytes, const Body& body) noexcept {
  try {
    const arrow::Status status = body();
    if (status.ok()) return 0;
    Say(status.message(), error, error_bytes);
  } catch (const std::exception& exception) {
    Say(exception.what(), error, error_bytes);
  } catch (...) {
    Say("failed", error, error_bytes);
  }
  return 1;
}

void* Open(const char* path, int64_t most_bytes, char* error, int64_t error_bytes) {
  std::unique_ptr<File> file;
  const int32_t failed = Guarded(error, error_bytes, [&] {
    file = std::make_unique<File>(most_bytes);
    return OpenFile(path, *file);
  });
  return failed != 0 ? nullptr : file.release();
}

void Close(void* file) { delete static_cast<File*>(file); }

int32_t Columns(void* file) { return static_cast<File*>(file)->schema->num_fields(); }

RidgeParquetColumn Column(void* opaque, int32_t column) {
  const File& file = *static_cast<File*>(opaque);
  const auto& field = file.schema->field(column);
  return {field->name().c_str(), file.types[static_cast<size_t>(column)].c_str(),
          KindOf(*field->type())};
}

int32_t RowGroups(void* file) { return static_cast<File*>(file)->reader->num_row_groups(); }

int64_t Rows(void* file, int32_t group) {
  return static_cast<File*>(file)->reader->parquet_reader()->metadata()->RowGroup(group)->num_rows();
}

int32_t Load(void* file, int32_t group, char* error, int64_t error_bytes) {
  return Guarded(error, error_bytes, [&] { return LoadGroup(*static_cast<File*>(file), group); });
}

int32_t Chunk(void* file, int32_t column, RidgeParquetChunk* chunk, char* error,
              int64_t error_bytes) {
  return Guarded(error, error_bytes,
                 [&] { return FillChunk(*static_cast<File*>(file), column, *chunk); });
}

constexpr RidgeParquetApi kApi = {RIDGE_PARQUET_ABI, "Arrow " ARROW_VERSION_STRING,
                                  Open,      Close, Columns, Column,
                                  RowGroups, Rows,  Load,    Chunk};

}  // namespace

extern "C" __attribute__((visibility("default"))) const RidgeParquetApi* ridge_parquet_api() {
  return &kApi;
}
