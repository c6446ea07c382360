#include "ridge/data/row_encoder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "ridge/core/units.h"
#include "ridge/data/csv_cells.h"
#include "ridge/data/csv_survey.h"

namespace ridge {
namespace {

std::string FirstOf(const std::vector<std::string>& names) {
  constexpr size_t kMost = 10;
  const auto end = names.begin() + static_cast<int64_t>(std::min(names.size(), kMost));
  return fmt::format("{}{}", fmt::join(names.begin(), end, ", "),
                     names.size() > kMost ? ", ..." : "");
}

// Its place among the sorted values; -1 when it is none of them.
int64_t PlaceOf(const std::string& text, const std::vector<std::string>& values) {
  const auto found = std::lower_bound(values.begin(), values.end(), text);
  return found == values.end() || *found != text ? -1 : found - values.begin();
}

using ColumnIndex = std::map<std::string_view, int64_t>;

// A search through the names for each of 100,000 columns would take seconds.
ColumnIndex IndexColumns(const CsvTable& table) {
  ColumnIndex index;
  for (const std::string& name : table.names) {
    const auto column = static_cast<int64_t>(index.size());
    index.emplace(name, column);
  }
  return index;
}

Result<int64_t> FindColumn(const CsvTable& table, const ColumnIndex& index, const std::string& name,
                           const char* what) {
  if (const auto found = index.find(name); found != index.end()) return found->second;
  return Status(ErrorCode::kInvalidData,
                fmt::format("{}: no column '{}', which is a {} of the training data; it has: {}",
                            table.path, name, what, FirstOf(table.names)));
}

}  // namespace

Result<RowEncoder> RowEncoder::Create(const CsvTable& table,
                                      std::shared_ptr<const Preprocessing> preprocessing) {
  RowEncoder encoder(table, std::move(preprocessing));
  const ColumnIndex index = IndexColumns(table);
  for (const TableColumn& column : encoder.rules().columns) {
    RIDGE_ASSIGN_OR_RETURN(const int64_t found, FindColumn(table, index, column.name, "feature"));
    encoder.columns_.push_back(found);
  }
  if (const auto& label = encoder.rules().label) {
    RIDGE_ASSIGN_OR_RETURN(encoder.label_column_, FindColumn(table, index, label->name, "label"));
  }
  encoder.features_ = encoder.rules().features();
  encoder.unknown_.resize(encoder.columns_.size());
  return encoder;
}

bool RowEncoder::IsLabeled(const std::vector<std::string>& cells) const {
  return label_column_ < 0 || !IsMissing(cells[static_cast<size_t>(label_column_)]);
}

Status RowEncoder::EncodeFeatures(const std::vector<std::string>& cells, int64_t line,
                                  float* features) {
  for (size_t i = 0; i < columns_.size(); ++i) {
    const TableColumn& column = rules().columns[i];
    const std::string& cell = cells[static_cast<size_t>(columns_[i])];
    const int64_t count = column.features();
    if (column.missing) features[count - 1] = IsMissing(cell) ? 1 : 0;
    if (!column.missing && IsMissing(cell)) ++unknown_[i].missing;
    if (column.kind == ColumnKind::kCategory)
      EncodeCategory(i, cell, features);
    else
      RIDGE_RETURN_IF_ERROR(EncodeNumber(i, cell, line, features));
    features += count;
  }
  return Status();
}

void RowEncoder::EncodeCategory(size_t index, const std::string& cell, float* features) {
  const TableColumn& column = rules().columns[index];
  std::fill_n(features, column.values.size(), 0.0F);
  if (IsMissing(cell)) return;
  const int64_t place = PlaceOf(cell, column.values);
  if (place >= 0)
    features[place] = 1;
  else if (unknown_[index].values++ == 0)
    unknown_[index].first = cell;
}

Result<double> RowEncoder::NumberOf(const std::string& cell, int64_t line, int64_t column) const {
  const std::optional<double> value = ParseNumber(cell, table_->format.decimal_comma);
  if (!value) return table_->BadCell(line, column, fmt::format("'{}' is not a number", cell));
  RIDGE_RETURN_IF_ERROR(CheckNumber(*table_, line, column, cell, *value));
  return *value;
}

Status RowEncoder::EncodeNumber(size_t index, const std::string& cell, int64_t line,
                                float* feature) const {
  const TableColumn& column = rules().columns[index];
  double value = column.mean;
  const bool is_boolean = column.kind == ColumnKind::kBoolean;
  if (const auto boolean = is_boolean ? ParseBoolean(cell) : std::nullopt) {
    value = *boolean;
  } else if (!IsMissing(cell)) {
    RIDGE_ASSIGN_OR_RETURN(value, NumberOf(cell, line, columns_[index]));
  }
  if (rules().standardize) value = (value - column.mean) / (column.std > 0 ? column.std : 1);
  *feature = static_cast<float>(value);
  return Status();
}

Result<double> RowEncoder::EncodeLabel(const std::vector<std::string>& cells, int64_t line) const {
  const std::string& cell = cells[static_cast<size_t>(label_column_)];
  if (rules().label->kind == LabelKind::kClass) {
    const int64_t place = PlaceOf(cell, preprocessing_->classes);
    if (place >= 0) return static_cast<double>(place);
    return table_->BadCell(line, label_column_,
                           fmt::format("'{}' is no class of the training data: {}", cell,
                                       FirstOf(preprocessing_->classes)));
  }
  RIDGE_ASSIGN_OR_RETURN(const double value, NumberOf(cell, line, label_column_));
  if (rules().label->kind == LabelKind::kInteger && value != std::floor(value)) {
    return table_->BadCell(
        line, label_column_,
        fmt::format("'{}' is not an integer, as the labels of the training data are", cell));
  }
  return value;
}

std::vector<std::string> RowEncoder::Notes() const {
  std::vector<std::string> notes;
  for (size_t i = 0; i < unknown_.size(); ++i) {
    const std::string& name = rules().columns[i].name;
    const Unknown& unknown = unknown_[i];
    if (unknown.values > 0) {
      notes.push_back(fmt::format(
          "{} of '{}' with no value of the training data, such as '{}': no category there",
          FormatCountOf(unknown.values, "cell"), name, unknown.first));
    }
    if (unknown.missing > 0) {
      const bool category = rules().columns[i].kind == ColumnKind::kCategory;
      notes.push_back(fmt::format("{} of '{}' empty, which none of the training data is: {}",
                                  FormatCountOf(unknown.missing, "cell"), name,
                                  category ? "no category there" : "read as the mean"));
    }
  }
  return notes;
}

}  // namespace ridge
