// The first pass finds what the columns are, or only counts rows when a preprocessing is given; the
// second fills memory of exactly the size needed: training rows from the front, held out ones
// behind them, so that both parts are ranges of one storage.
#include "ridge/data/csv.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/core/units.h"
#include "ridge/data/container/sample_sets.h"
#include "ridge/data/csv_survey.h"
#include "ridge/data/memory_source.h"
#include "ridge/data/row_encoder.h"
#include "ridge/data/table_load.h"

namespace ridge {
namespace {

// All that the second pass needs to know.
struct LoadPlan {
  std::shared_ptr<const Preprocessing> preprocessing;
  ContentSplit split;  // counted
  std::vector<std::string> notes;
};

ContentSplit SplitFor(const DataOptions& options) {
  return options.hold_out > 0 ? ContentSplit(options.hold_out) : ContentSplit();
}

Result<LoadPlan> PlanBySurvey(const std::string& name, const CsvTable& table, const CsvOptions& csv,
                              const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(CsvSurvey survey,
                         SurveyCsv(name, table, csv, SplitFor(options), options.plain_tables));
  return LoadPlan{std::make_shared<Preprocessing>(std::move(survey.preprocessing)), survey.split,
                  std::move(survey.notes)};
}

// The columns are known: counts the rows that have a label.
Result<LoadPlan> PlanByPreprocessing(const CsvTable& table, const CsvOptions& csv,
                                     const DataOptions& options) {
  LoadPlan plan{options.preprocessing, SplitFor(options), {}};
  RIDGE_ASSIGN_OR_RETURN(const RowEncoder encoder, RowEncoder::Create(table, plan.preprocessing));
  const RowHasher hasher(table, csv);
  int64_t unlabeled = 0;
  for (bool settled = false; !settled;) {
    unlabeled = 0;
    plan.split = plan.split.Uncounted();
    RIDGE_RETURN_IF_ERROR(table.ForEachRow([&](const std::vector<std::string>& cells, int64_t) {
      if (encoder.IsLabeled(cells))
        plan.split.Count(hasher(cells));
      else
        ++unlabeled;
      return Status();
    }));
    RIDGE_ASSIGN_OR_RETURN(settled, plan.split.Settle(table.path));
  }
  if (plan.split.size() == 0)
    return Status(ErrorCode::kInvalidData, table.path + ": has no row with a label");
  if (unlabeled > 0) {
    plan.notes.push_back(fmt::format("{} without '{}': left out", FormatCountOf(unlabeled, "row"),
                                     encoder.label()->name));
  }
  return plan;
}

DType LabelType(const TableLabel& label) {
  return label.kind == LabelKind::kNumber ? DType::kF32 : DType::kI64;
}

Result<std::vector<NamedTensor>> MakeFields(const std::string& path, const RowEncoder& encoder,
                                            int64_t rows) {
  std::vector<NamedTensor> fields;
  if (encoder.features() > 0) {
    RIDGE_ASSIGN_OR_RETURN(Tensor tensor,
                           MakeTensor(path, {DType::kF32, {rows, encoder.features()}}));
    fields.emplace_back("features", std::move(tensor));
  }
  if (encoder.label() == nullptr) return fields;
  RIDGE_ASSIGN_OR_RETURN(Tensor tensor, MakeTensor(path, {LabelType(*encoder.label()), {rows}}));
  fields.emplace_back("label", std::move(tensor));
  return fields;
}

// `lines` gets the line of each row.
Result<std::vector<NamedTensor>> Load(const CsvTable& table, const CsvOptions& csv,
                                      const ContentSplit& split, RowEncoder& encoder,
                                      std::vector<uint32_t>& lines) {
  RIDGE_ASSIGN_OR_RETURN(std::vector<NamedTensor> fields,
                         MakeFields(table.path, encoder, split.size()));
  Tensor* label = encoder.label() == nullptr ? nullptr : &fields.back().second;
  float* features = encoder.features() == 0 ? nullptr : fields[0].second.as_mutable<float>();
  lines.resize(static_cast<size_t>(split.size()));
  const RowHasher hasher(table, csv);
  const int64_t first_held_out = split.size() - split.held_out();
  int64_t training = 0, held_out = first_held_out;
  RIDGE_RETURN_IF_ERROR(
      table.ForEachRow([&](const std::vector<std::string>& cells, int64_t line) -> Status {
        if (!encoder.IsLabeled(cells)) return Status();
        const bool holds_out = split.HoldsOut(hasher(cells));
        int64_t& next = holds_out ? held_out : training;
        if (next == (holds_out ? split.size() : first_held_out))
          return Status();  // the file grew since it was counted
        const int64_t row = next++;
        lines[static_cast<size_t>(row)] = static_cast<uint32_t>(line);
        if (features != nullptr) {
          RIDGE_RETURN_IF_ERROR(
              encoder.EncodeFeatures(cells, line, features + row * encoder.features()));
        }
        if (label == nullptr) return Status();
        RIDGE_ASSIGN_OR_RETURN(const double value, encoder.EncodeLabel(cells, line));
        StoreFromDouble(label->type().dtype, label->mutable_data(), row, value);
        return Status();
      }));
  if (training == first_held_out && held_out == split.size()) return fields;
  return Status(ErrorCode::kInvalidData, table.path + ": became shorter while it was read");
}

}  // namespace

Result<LoadedTable> LoadTable(const std::string& name, const CsvTable& table, const CsvOptions& csv,
                              const DataOptions& options) {
  const bool is_known = options.preprocessing != nullptr && options.preprocessing->table;
  RIDGE_ASSIGN_OR_RETURN(LoadPlan plan, is_known ? PlanByPreprocessing(table, csv, options)
                                                 : PlanBySurvey(name, table, csv, options));
  RIDGE_ASSIGN_OR_RETURN(RowEncoder encoder, RowEncoder::Create(table, plan.preprocessing));
  LoadedTable loaded;
  RIDGE_ASSIGN_OR_RETURN(loaded.fields, Load(table, csv, plan.split, encoder, loaded.lines));
  for (const auto& notes : {table.FormatNotes(), plan.notes, encoder.Notes()}) {
    for (const std::string& note : notes) loaded.notes.push_back(name + ": " + note);
  }
  loaded.features = encoder.features();
  loaded.held_out = plan.split.held_out();
  loaded.preprocessing = std::move(plan.preprocessing);
  return loaded;
}

std::vector<ModelSize> SizesOfTable(int64_t features, const Source& source,
                                    const Preprocessing& preprocessing) {
  std::vector<ModelSize> sizes;
  if (features > 0) sizes.push_back({"inputs", features});
  const int label = source.FindField("label");
  int64_t classes = static_cast<int64_t>(preprocessing.classes.size());
  if (classes == 0 && label >= 0) classes = source.fields()[static_cast<size_t>(label)].classes;
  if (classes > 0) sizes.push_back({"classes", classes});
  return sizes;
}

Result<DataSplits> OpenCsv(const std::string& name, const std::string& argument,
                           const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const CsvOptions csv, ParseCsvOptions(name, argument));
  RIDGE_ASSIGN_OR_RETURN(const CsvTable table, CsvTable::Open(csv.path, csv.format));
  RIDGE_ASSIGN_OR_RETURN(LoadedTable loaded, LoadTable(name, table, csv, options));
  DataSplits splits;
  RIDGE_ASSIGN_OR_RETURN(const SourcePtr all,
                         MemorySource::Create(name, std::move(loaded.fields),
                                              TextLines{csv.path, std::move(loaded.lines)}));
  SetTraining({all, loaded.held_out}, splits);
  splits.sizes = SizesOfTable(loaded.features, *all, *loaded.preprocessing);
  splits.notes = std::move(loaded.notes);
  splits.preprocessing = std::move(loaded.preprocessing);
  return splits;
}

}  // namespace ridge
