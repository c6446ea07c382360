// Single values become the cells of a table, as text: so they are numbers, categories, labels or
// missing by the rules of CSV.  Pictures and lists are gathered beside it, a row each, and put into
// the order of the table's samples at the end.
#include "ridge/data/parquet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "ridge/data/container/file_list.h"
#include "ridge/data/container/parquet_plugin.h"
#include "ridge/data/container/picture_bytes.h"
#include "ridge/data/container/sample_sets.h"
#include "ridge/data/content_split.h"
#include "ridge/data/encoded_samples.h"
#include "ridge/data/picture_options.h"
#include "ridge/data/spec_options.h"
#include "ridge/data/table_load.h"

namespace ridge {
namespace {

constexpr int64_t kMostRows = std::numeric_limits<uint32_t>::max();
constexpr int64_t kMostElements = 1 << 24;  // of a list

Status BadData(const std::string& where, const std::string& what) {
  return Status(ErrorCode::kInvalidData, where + ": " + what);
}

// ---- options

struct ParquetOptions {
  CsvOptions table;
  PictureOptions pictures;
  std::string image;  // a column
};

Result<ParquetOptions> ParseParquetOptions(const std::string& spec, const std::string& argument) {
  const SpecOptions split = SplitSpecOptions(argument);
  std::vector<std::string> keys = {"label", "drop", "category", "number", "standardize", "image"};
  const std::vector<std::string>& pictures = PictureKeys();
  keys.insert(keys.end(), pictures.begin(), pictures.end());
  RIDGE_RETURN_IF_ERROR(CheckSpecKeys(spec, split, keys));
  ParquetOptions options;
  options.table.path = split.path;
  for (const auto& [key, value] : split.options) {
    if (key == "image") {
      options.image = value;
    } else if (std::find(pictures.begin(), pictures.end(), key) != pictures.end()) {
      RIDGE_RETURN_IF_ERROR(TakePictureOption(spec, key, value, options.pictures));
    } else {
      RIDGE_RETURN_IF_ERROR(TakeCsvOption(spec, key, value, options.table));
    }
  }
  return options;
}

// ---- columns

// What the columns of all files are; a number is that of a column.
struct Layout {
  std::vector<ParquetColumn> columns;
  std::vector<int32_t> cells, lists;
  int32_t picture = -1;
  std::vector<std::string> notes;
};

bool IsCell(RidgeParquetKind kind) {
  return kind >= RIDGE_PARQUET_INTEGERS && kind <= RIDGE_PARQUET_TEXTS;
}

std::string_view BytesOf(const RidgeParquetChunk& chunk, int64_t row) {
  return {chunk.bytes + chunk.offsets[row],
          static_cast<size_t>(chunk.offsets[row + 1] - chunk.offsets[row])};
}

// Whether the first bytes that there are begin as a picture does.
Result<bool> HoldsPictures(ParquetFile& file, int32_t column) {
  for (int32_t group = 0; group < file.row_groups(); ++group) {
    RIDGE_RETURN_IF_ERROR(file.Load(group));
    RIDGE_ASSIGN_OR_RETURN(const RidgeParquetChunk chunk, file.Chunk(column));
    for (int64_t row = 0; row < chunk.rows; ++row) {
      if (chunk.valid[row] != 0)
        return ReadImageHeader(AsBytes(BytesOf(chunk, row)), /*whole=*/true).ok();
    }
  }
  return false;
}

Result<Layout> FindLayout(const std::string& name, ParquetFile& file,
                          const ParquetOptions& options) {
  Layout layout;
  layout.columns = file.columns();
  const auto note = [&](const ParquetColumn& column, const std::string& why) {
    layout.notes.push_back(
        fmt::format("{}: column '{}' ({}) is left out{}", name, column.name, column.type, why));
  };
  for (int32_t i = 0; i < static_cast<int32_t>(layout.columns.size()); ++i) {
    const ParquetColumn& column = layout.columns[static_cast<size_t>(i)];
    const bool wanted = !options.image.empty() && column.name == options.image;
    if (IsCell(column.kind)) {
      layout.cells.push_back(i);
    } else if (column.kind == RIDGE_PARQUET_INTEGER_LISTS ||
               column.kind == RIDGE_PARQUET_FLOAT_LISTS) {
      layout.lists.push_back(i);
    } else if (column.kind != RIDGE_PARQUET_BYTES) {
      note(column, "");
    } else if (wanted || (options.image.empty() && layout.picture < 0)) {
      RIDGE_ASSIGN_OR_RETURN(const bool pictures, HoldsPictures(file, i));
      if (pictures || wanted)
        layout.picture = i;
      else
        note(column, ": its bytes are no picture");
    } else {
      note(column, "");
    }
  }
  const bool found = layout.picture >= 0;
  if (!options.image.empty() && !found) {
    return InvalidArgument(
        fmt::format("data '{}': image={} is no column of bytes", name, options.image));
  }
  return layout;
}

// ---- rows

// The files of one set, as one run of rows.
struct FileRows {
  std::vector<ParquetFile> files;
  std::vector<int64_t> ends;  // of each file, in rows of all
  std::vector<bool> skipped;  // bad rows; empty: none

  int64_t rows() const { return ends.back(); }
  // "FILE:7" of a row of all, from 1.
  std::string Origin(int64_t line) const {
    const auto at = std::lower_bound(ends.begin(), ends.end(), line) - ends.begin();
    const int64_t before = at == 0 ? 0 : ends[static_cast<size_t>(at - 1)];
    return fmt::format("{}:{}", files[static_cast<size_t>(at)].path(), line - before);
  }
};

Result<FileRows> OpenFiles(const std::vector<std::string>& paths) {
  FileRows all;
  int64_t rows = 0;
  for (const std::string& path : paths) {
    RIDGE_ASSIGN_OR_RETURN(ParquetFile file, ParquetFile::Open(path));
    for (int32_t group = 0; group < file.row_groups(); ++group) rows += file.rows(group);
    if (rows > kMostRows)
      return BadData(path, fmt::format("more than {} rows are too many", kMostRows));
    if (!all.files.empty() && file.columns() != all.files.front().columns()) {
      return BadData(path, fmt::format("has other columns than {}, by name or type",
                                       all.files.front().path()));
    }
    all.files.push_back(std::move(file));
    all.ends.push_back(rows);
  }
  return all;
}

// Calls visit(chunks, row, line) for each row that is not skipped: chunks of the columns given, the
// row in them, and its number in all files from 1.
template <typename Visit>
Status ForEachRow(FileRows& all, const std::vector<int32_t>& columns, const Visit& visit) {
  int64_t line = 0;
  for (ParquetFile& file : all.files) {
    for (int32_t group = 0; group < file.row_groups(); ++group) {
      RIDGE_RETURN_IF_ERROR(file.Load(group));
      std::vector<RidgeParquetChunk> chunks;
      for (const int32_t column : columns) {
        RIDGE_ASSIGN_OR_RETURN(const RidgeParquetChunk chunk, file.Chunk(column));
        chunks.push_back(chunk);
      }
      for (int64_t row = 0; row < file.rows(group); ++row) {
        ++line;
        if (!all.skipped.empty() && all.skipped[static_cast<size_t>(line - 1)]) continue;
        RIDGE_RETURN_IF_ERROR(visit(chunks, row, line));
      }
    }
  }
  return Status();
}

// The shortest text that is read as the same value.
std::string CellOf(const RidgeParquetChunk& chunk, RidgeParquetKind kind, int64_t row) {
  if (chunk.valid[row] == 0) return "";
  switch (kind) {
    case RIDGE_PARQUET_INTEGERS:
      return fmt::format("{}", chunk.integers[row]);
    case RIDGE_PARQUET_BOOLEANS:
      return chunk.integers[row] != 0 ? "true" : "false";
    case RIDGE_PARQUET_FLOATS:
      return std::isnan(chunk.floats[row]) ? "" : fmt::format("{}", chunk.floats[row]);
    default:
      return std::string(BytesOf(chunk, row));
  }
}

// ---- pictures and lists

struct PictureBytes {
  std::string bytes;
  std::vector<int64_t> begins = {0};  // of each row's, and the end
};

struct Gathered {
  std::vector<Tensor> lists;  // [rows, N]
  PictureBytes pictures;
  std::vector<uint64_t> hashes;  // a row each, of all that is no cell
};

// Gathers what is no cell, of all rows; rows of pictures that cannot be read are skipped where the
// run bears them.
class Gatherer {
 public:
  Gatherer(const Layout& layout, PictureReader* reader, BadRecordsPtr bad_records)
      : layout_(layout), reader_(reader), bad_records_(std::move(bad_records)) {}

  Result<Gathered> Run(FileRows& all) {
    std::vector<int32_t> columns = layout_.lists;
    if (layout_.picture >= 0) columns.push_back(layout_.picture);
    if (columns.empty()) return Gathered();
    all.skipped.assign(static_cast<size_t>(all.rows()), false);
    lists_.resize(layout_.lists.size());
    RIDGE_RETURN_IF_ERROR(
        ForEachRow(all, columns, [&](const auto& chunks, int64_t row, int64_t line) {
          ContentHash hash;
          for (size_t i = 0; i < lists_.size(); ++i)
            RIDGE_RETURN_IF_ERROR(AddList(all, i, chunks[i], row, line, hash));
          if (layout_.picture >= 0) {
            const std::string_view bytes =
                chunks.back().valid[row] != 0 ? BytesOf(chunks.back(), row) : "";
            hash.Add(bytes);
            RIDGE_RETURN_IF_ERROR(AddPicture(all, bytes, line));
          }
          gathered_.hashes.push_back(hash.value());
          return Status();
        }));
    return Finish(all.rows());
  }

 private:
  struct List {
    std::optional<int64_t> length;
    std::string values;  // of f32 or i64
  };

  bool IsFloat(size_t i) const {
    const auto column = static_cast<size_t>(layout_.lists[i]);
    return layout_.columns[column].kind == RIDGE_PARQUET_FLOAT_LISTS;
  }

  Status AddList(const FileRows& all, size_t i, const RidgeParquetChunk& chunk, int64_t row,
                 int64_t line, ContentHash& hash) {
    List& list = lists_[i];
    const int64_t begin = chunk.offsets[row], length = chunk.offsets[row + 1] - begin;
    if (!list.length) list.length = length;
    if (length != *list.length || length < 1 || length > kMostElements || chunk.valid[row] == 0) {
      return BadData(all.Origin(line),
                     fmt::format("the list '{}' has {} elements; the first has {}, and all must "
                                 "have as many, 1 to {}",
                                 layout_.columns[static_cast<size_t>(layout_.lists[i])].name,
                                 length, *list.length, kMostElements));
    }
    const size_t before = list.values.size();
    for (int64_t k = begin; k < begin + length; ++k) {
      const auto value = IsFloat(i) ? static_cast<float>(chunk.floats[k]) : 0;
      if (IsFloat(i))
        list.values.append(reinterpret_cast<const char*>(&value), sizeof value);
      else
        list.values.append(reinterpret_cast<const char*>(&chunk.integers[k]), sizeof(int64_t));
    }
    hash.Add(std::string_view(list.values).substr(before));
    return Status();
  }

  Status AddPicture(FileRows& all, std::string_view bytes, int64_t line) {
    gathered_.pictures.bytes += bytes;
    gathered_.pictures.begins.push_back(static_cast<int64_t>(gathered_.pictures.bytes.size()));
    const Status admitted = Admit(bytes);
    if (admitted.ok()) return admitted;
    const std::string origin = all.Origin(line);
    const bool skips = bad_records_ != nullptr && bad_records_->skips();
    if (!skips || !IsBadRecord(admitted)) return BadData(origin, admitted.message());
    all.skipped[static_cast<size_t>(line - 1)] = true;
    return bad_records_->Add(origin, admitted.message());
  }

  Status Admit(std::string_view bytes) {
    RIDGE_ASSIGN_OR_RETURN(const auto header, ReadImageHeader(AsBytes(bytes), /*whole=*/true));
    return reader_->Admit(*header);
  }

  Result<Gathered> Finish(int64_t rows) {
    for (size_t i = 0; i < lists_.size(); ++i) {
      const TensorType type{IsFloat(i) ? DType::kF32 : DType::kI64,
                            {rows, lists_[i].length.value_or(1)}};
      RIDGE_ASSIGN_OR_RETURN(Tensor tensor, MakeTensor("a list", type));
      std::memcpy(tensor.mutable_data(), lists_[i].values.data(), lists_[i].values.size());
      gathered_.lists.push_back(std::move(tensor));
      lists_[i].values = {};
    }
    return std::move(gathered_);
  }

  const Layout& layout_;
  PictureReader* reader_;
  const BadRecordsPtr bad_records_;
  std::vector<List> lists_;
  Gathered gathered_;
};

// ---- the source

// Samples in memory, and one picture of each that is decoded when it is read.
class ParquetSource : public Source, public EncodedSamples {
 public:
  ParquetSource(SourcePtr rest, std::vector<Field> fields, PictureReader reader,
                PictureBytes pictures)
      : Source(rest->name(), std::move(fields), rest->size()),
        rest_(std::move(rest)),
        reader_(std::move(reader)),
        pictures_(std::move(pictures)) {}

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override {
    if (field > 0) return rest_->Read(at, field - 1, scratch, out);
    const auto i = static_cast<size_t>(at.index);
    const int64_t begin = pictures_.begins[i], end = pictures_.begins[i + 1];
    const std::string_view bytes(pictures_.bytes.data() + begin, static_cast<size_t>(end - begin));
    const Status read =
        reader_.Read(AsBytes(bytes), scratch, static_cast<uint8_t*>(out), at.crop, at.stages);
    return read.ok() ? read : Status(read.code(), Origin(at.index) + ": " + read.message());
  }
  int64_t scratch_bytes() const override { return reader_.scratch_bytes(); }
  int64_t heap_bytes() const override { return reader_.heap_bytes(); }
  bool reads_slowly() const override { return true; }
  bool reads_crops() const override { return true; }
  std::string Origin(int64_t index) const override { return rest_->Origin(index); }
  int64_t resident_bytes() const override {
    return rest_->resident_bytes() +
           static_cast<int64_t>(pictures_.bytes.capacity() +
                                pictures_.begins.capacity() * sizeof(int64_t));
  }
  Status AddContent(int64_t index, std::vector<char>& buffer, ContentHash& hash) const override {
    const auto i = static_cast<size_t>(index);
    const auto begin = static_cast<size_t>(pictures_.begins[i]);
    hash.Add(std::string_view(pictures_.bytes)
                 .substr(begin, static_cast<size_t>(pictures_.begins[i + 1]) - begin));
    for (size_t field = 0; field < rest_->fields().size(); ++field) {
      buffer.resize(static_cast<size_t>(rest_->fields()[field].type.bytes()));
      RIDGE_RETURN_IF_ERROR(rest_->Read({index}, static_cast<int>(field), {}, buffer.data()));
      hash.Add({buffer.data(), buffer.size()});
    }
    return Status();
  }

 private:
  const SourcePtr rest_;
  const PictureReader reader_;
  const PictureBytes pictures_;
};

PictureBytes InOrder(const PictureBytes& pictures, const std::vector<uint32_t>& lines) {
  PictureBytes ordered;
  for (const uint32_t line : lines) {
    const int64_t begin = pictures.begins[line - 1], end = pictures.begins[line];
    ordered.bytes.append(pictures.bytes, static_cast<size_t>(begin),
                         static_cast<size_t>(end - begin));
    ordered.begins.push_back(static_cast<int64_t>(ordered.bytes.size()));
  }
  return ordered;
}

Result<Tensor> InOrder(const std::string& name, const Tensor& list,
                       const std::vector<uint32_t>& lines) {
  const auto samples = static_cast<int64_t>(lines.size());
  const int64_t length = list.type().dims[1], row_bytes = list.bytes() / list.type().dims[0];
  RIDGE_ASSIGN_OR_RETURN(Tensor ordered, MakeTensor(name, {list.type().dtype, {samples, length}}));
  for (int64_t i = 0; i < samples; ++i) {
    std::memcpy(static_cast<char*>(ordered.mutable_data()) + i * row_bytes,
                list.as<char>() + (lines[static_cast<size_t>(i)] - 1) * row_bytes,
                static_cast<size_t>(row_bytes));
  }
  return ordered;
}

// ---- opening

struct Opening {
  std::string name;
  ParquetOptions options;
  FileSets sets;
  FileRows training;
  Layout layout;
  std::optional<PicturePreprocessing> pictures;
};

Result<Opening> Begin(const std::string& name, const std::string& argument,
                      const DataOptions& options) {
  Opening opening;
  opening.name = name;
  RIDGE_ASSIGN_OR_RETURN(opening.options, ParseParquetOptions(name, argument));
  RIDGE_ASSIGN_OR_RETURN(const auto paths, FindFiles(name, opening.options.table.path));
  RIDGE_ASSIGN_OR_RETURN(opening.sets, SplitFiles(name, paths));
  RIDGE_ASSIGN_OR_RETURN(opening.training, OpenFiles(opening.sets.train));
  RIDGE_ASSIGN_OR_RETURN(opening.layout,
                         FindLayout(name, opening.training.files.front(), opening.options));
  if (opening.layout.picture >= 0) {
    RIDGE_ASSIGN_OR_RETURN(opening.pictures, PlanPictures(name, opening.options.pictures, options));
  }
  return opening;
}

CsvTable TableOf(const Opening& opening, FileRows& all, const std::vector<uint64_t>& hashes) {
  CsvTable table;
  table.path = all.files.size() == 1 ? all.files.front().path() : opening.options.table.path;
  table.format.has_header = true;
  const Layout& layout = opening.layout;
  for (const int32_t cell : layout.cells)
    table.names.push_back(layout.columns[static_cast<size_t>(cell)].name);
  table.has_hash_cell = !hashes.empty();
  table.rows = [&all, &layout, &hashes](const CsvTable::RowVisitor& visit) {
    std::vector<std::string> cells;
    return ForEachRow(all, layout.cells, [&](const auto& chunks, int64_t row, int64_t line) {
      cells.clear();
      for (size_t i = 0; i < chunks.size(); ++i) {
        const auto column = static_cast<size_t>(layout.cells[i]);
        cells.push_back(CellOf(chunks[i], layout.columns[column].kind, row));
      }
      if (!hashes.empty())
        cells.push_back(fmt::format("{:x}", hashes[static_cast<size_t>(line) - 1]));
      return visit(cells, line);
    });
  };
  return table;
}

struct OpenedSet {
  SampleSet set;
  LoadedTable table;
};

Result<OpenedSet> OpenSet(const Opening& opening, FileRows all, const DataOptions& options) {
  PictureReader reader(opening.pictures ? opening.pictures->target : PictureTarget());
  RIDGE_ASSIGN_OR_RETURN(Gathered gathered,
                         Gatherer(opening.layout, &reader, options.bad_records).Run(all));
  const CsvTable table = TableOf(opening, all, gathered.hashes);
  OpenedSet opened;
  RIDGE_ASSIGN_OR_RETURN(opened.table,
                         LoadTable(opening.name, table, opening.options.table, options));
  LoadedTable& loaded = opened.table;
  for (size_t i = 0; i < gathered.lists.size(); ++i) {
    const auto column = static_cast<size_t>(opening.layout.lists[i]);
    RIDGE_ASSIGN_OR_RETURN(Tensor list, InOrder(opening.name, gathered.lists[i], loaded.lines));
    loaded.fields.emplace_back(opening.layout.columns[column].name, std::move(list));
  }
  PictureBytes pictures;
  if (opening.pictures) pictures = InOrder(gathered.pictures, loaded.lines);
  RIDGE_ASSIGN_OR_RETURN(opened.set.all,
                         MemorySource::Create(opening.name, std::move(loaded.fields),
                                              TextLines{table.path, std::move(loaded.lines)}));
  opened.set.held_out = loaded.held_out;
  if (!opening.pictures) return opened;
  std::vector<Field> fields = {PictureField(*opening.pictures)};
  const std::vector<Field>& others = opened.set.all->fields();
  fields.insert(fields.end(), others.begin(), others.end());
  opened.set.all = std::make_shared<ParquetSource>(opened.set.all, std::move(fields),
                                                   std::move(reader), std::move(pictures));
  return opened;
}

std::vector<ModelSize> SizesOf(const OpenedSet& training, bool has_pictures) {
  std::vector<ModelSize> sizes =
      SizesOfTable(training.table.features, *training.set.all, *training.table.preprocessing);
  if (has_pictures)
    std::erase_if(sizes, [](const ModelSize& size) { return size.name == "inputs"; });
  return sizes;
}

}  // namespace

Result<DataSplits> OpenParquet(const std::string& name, const std::string& argument,
                               const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(Opening opening, Begin(name, argument, options));
  DataOptions of_training = options;
  if (!opening.sets.validation.empty()) of_training.hold_out = 0;
  RIDGE_ASSIGN_OR_RETURN(const OpenedSet training,
                         OpenSet(opening, std::move(opening.training), of_training));
  DataSplits splits;
  SetTraining(training.set, splits);
  DataOptions of_others = options;
  of_others.hold_out = 0;
  of_others.preprocessing = training.table.preprocessing;
  const std::pair<const std::vector<std::string>&, SourcePtr&> further[] = {
      {opening.sets.validation, splits.validation}, {opening.sets.test, splits.test}};
  for (const auto& [paths, source] : further) {
    if (paths.empty()) continue;
    RIDGE_ASSIGN_OR_RETURN(FileRows files, OpenFiles(paths));
    if (files.files.front().columns() != opening.layout.columns)
      return BadData(paths.front(), "has other columns than the files to train on");
    RIDGE_ASSIGN_OR_RETURN(const OpenedSet set, OpenSet(opening, std::move(files), of_others));
    source = set.set.all;
  }
  splits.sizes = SizesOf(training, opening.pictures.has_value());
  splits.notes = opening.layout.notes;
  splits.notes.insert(splits.notes.end(), training.table.notes.begin(), training.table.notes.end());
  auto preprocessing = std::make_shared<Preprocessing>(*training.table.preprocessing);
  preprocessing->pictures = opening.pictures;
  splits.preprocessing = std::move(preprocessing);
  return splits;
}

Result<DataFacts> ParquetFacts(const std::string& name, const std::string& argument,
                               const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(Opening opening, Begin(name, argument, options));
  RIDGE_ASSIGN_OR_RETURN(const OpenedSet training,
                         OpenSet(opening, std::move(opening.training), options));
  DataFacts facts;
  facts.fields = training.set.all->fields();
  facts.sizes = SizesOf(training, opening.pictures.has_value());
  if (!opening.pictures) return facts;
  facts.fields.erase(facts.fields.begin());
  if (const auto target = KnownTarget(opening.options.pictures, options))
    facts.fields.insert(facts.fields.begin(), {"image", target->type()});
  return facts;
}

}  // namespace ridge
