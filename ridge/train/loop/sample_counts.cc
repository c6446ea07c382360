#include "ridge/train/loop/sample_counts.h"

#include <algorithm>
#include <cmath>

#include "ridge/core/rounding.h"

namespace ridge {
namespace {

const InputSpec& InputOf(const BatchSpec& spec, const std::string& name) {
  const auto found = std::find_if(spec.inputs.begin(), spec.inputs.end(),
                                  [&](const InputSpec& input) { return input.name == name; });
  RIDGE_CHECK(found != spec.inputs.end(), "an evaluation has no input " + name);
  return *found;
}

void AddMetric(const char* name, const std::optional<double>& value, NamedMetrics& metrics) {
  if (value && std::isfinite(*value)) metrics.emplace_back(name, *value);
}

// How a picture lies in a field: strides in bytes.
struct ThumbnailShape {
  int64_t height = 0, width = 0, channels = 1;
  int64_t row = 0, column = 1, channel = 0;
  int64_t begin = 0;  // its first byte
};

bool IsChannels(int64_t extent) { return extent == 1 || extent == 3; }

// Of a clip [N,...] its middle frame.
std::optional<ThumbnailShape> ShapeOf(const TensorType& type) {
  const Dims& d = type.dims;
  if (d.size() == 4) {
    const TensorType frame{type.dtype, Dims(d.begin() + 1, d.end())};
    std::optional<ThumbnailShape> shape = ShapeOf(frame);
    if (shape) shape->begin = d[0] / 2 * frame.elements();
    return shape;
  }
  if (type.dtype != DType::kU8) return std::nullopt;
  if (d.size() == 2) return ThumbnailShape{d[0], d[1], 1, d[1], 1, 0};
  if (d.size() != 3) return std::nullopt;
  if (IsChannels(d[2])) return ThumbnailShape{d[0], d[1], d[2], d[1] * d[2], d[2], 1};
  if (IsChannels(d[0])) return ThumbnailShape{d[1], d[2], d[0], d[2], 1, d[1] * d[2]};
  return std::nullopt;
}

// The mean of the pixels that thumbnail pixel (x, y) stands for.
uint8_t MeanPixel(const ThumbnailShape& from, int64_t block, int64_t x, int64_t y, int64_t channel,
                  const std::vector<uint8_t>& pixels) {
  const int64_t bottom = std::min((y + 1) * block, from.height);
  const int64_t right = std::min((x + 1) * block, from.width);
  int64_t sum = 0, count = 0;
  for (int64_t py = y * block; py < bottom; ++py) {
    for (int64_t px = x * block; px < right; ++px, ++count)
      sum += pixels[static_cast<size_t>(from.begin + py * from.row + px * from.column +
                                        channel * from.channel)];
  }
  return static_cast<uint8_t>(count == 0 ? 0 : sum / count);
}

Thumbnail Shrunk(const ThumbnailShape& from, const std::vector<uint8_t>& pixels) {
  const int64_t block = CeilDiv(std::max(from.height, from.width), Thumbnail::kMostSide);
  Thumbnail small{CeilDiv(from.width, block), CeilDiv(from.height, block), from.channels, {}};
  for (int64_t y = 0; y < small.height; ++y) {
    for (int64_t x = 0; x < small.width; ++x) {
      for (int64_t c = 0; c < small.channels; ++c)
        small.pixels.push_back(MeanPixel(from, block, x, y, c, pixels));
    }
  }
  return small;
}

}  // namespace

SampleCounts::SampleCounts(Executor& executor, int step, const BatchSpec& spec,
                           const EvalSubject& subject)
    : executor_(executor), step_(step), spec_(spec), subject_(subject) {
  Clear();
}

void SampleCounts::Clear() {
  if (!subject_.label.empty() && !subject_.pixels && HasOutput("logits")) {
    classes_.emplace(subject_.classes);
    row_.resize(static_cast<size_t>(subject_.classes));
    target_.resize(1);
  }
  if (subject_.pixels && HasOutput("said")) {
    classes_.emplace(subject_.classes);
    row_.resize(static_cast<size_t>(InputOf(spec_, subject_.label).type.elements()));
    target_.resize(row_.size());
  }
  if (!subject_.target.empty() && HasOutput("prediction")) {
    const int64_t elements = InputOf(spec_, subject_.target).type.elements();
    errors_.emplace(elements);
    row_.resize(static_cast<size_t>(elements));
    target_.resize(row_.size());
  }
  if (!subject_.spelled.empty() && HasOutput("spelled")) edits_.emplace();
  if (!subject_.written.empty() && HasOutput("written")) edits_.emplace();
  if (!subject_.boxes.empty() && HasOutput("detections")) {
    precision_.emplace(subject_.classes);
    row_.resize(static_cast<size_t>(subject_.answers * (4 + subject_.classes)));
  }
}

void SampleCounts::Rows::Read(int64_t row, std::span<double> to) const {
  for (int64_t i = 0; i < width; ++i)
    to[static_cast<size_t>(i)] = LoadAsDouble(dtype, data, row * width + i);
}

std::vector<int64_t> SampleCounts::Rows::Integers(int64_t row) const {
  std::vector<int64_t> values(static_cast<size_t>(width));
  for (int64_t i = 0; i < width; ++i)
    values[static_cast<size_t>(i)] =
        static_cast<int64_t>(LoadAsDouble(dtype, data, row * width + i));
  return values;
}

Result<SampleCounts::Rows> SampleCounts::OutputRows(const char* name) {
  const TensorType& type = executor_.OutputType(step_, name);
  RIDGE_ASSIGN_OR_RETURN(const void* data, executor_.transfers().Output(step_, name));
  return Rows{type.dtype, type.elements() / type.dims[0], data};
}

SampleCounts::Rows SampleCounts::InputRows(const std::string& name, int slot) const {
  const TensorType& type = InputOf(spec_, name).type;
  return {type.dtype, type.elements(), executor_.transfers().Input(name, slot)};
}

Status SampleCounts::Add(const LoadedBatch& batch, int64_t first) {
  if (classes_ && subject_.pixels) RIDGE_RETURN_IF_ERROR(AddPixels(batch));
  if (classes_ && !subject_.pixels) RIDGE_RETURN_IF_ERROR(AddClasses(batch, first));
  if (edits_) RIDGE_RETURN_IF_ERROR(subject_.written.empty() ? AddTexts(batch) : AddWritten(batch));
  if (precision_) RIDGE_RETURN_IF_ERROR(AddBoxes(batch));
  return errors_ ? AddErrors(batch) : Status();
}

Status SampleCounts::Share(Agreement& ranks) {
  if (ranks.size() == 1) return Status();
  PackedNumbers mine;
  if (classes_) classes_->Pack(mine);
  if (edits_) edits_->Pack(mine);
  if (precision_) precision_->Pack(mine);
  if (errors_) errors_->Pack(mine);
  RIDGE_ASSIGN_OR_RETURN(const std::vector<PackedNumbers> all, ranks.All(mine));
  Clear();
  for (const PackedNumbers& numbers : all) {
    NumberReader from(numbers);
    if (classes_) classes_->Merge(from);
    if (edits_) edits_->Merge(from);
    if (precision_) precision_->Merge(from);
    if (errors_) errors_->Merge(from);
  }
  return Status();
}

Status SampleCounts::AddTexts(const LoadedBatch& batch) {
  RIDGE_ASSIGN_OR_RETURN(const Rows spelled, OutputRows("spelled"));
  const Rows targets = InputRows(subject_.spelled, batch.slot);
  const Rows lengths = InputRows(subject_.spelled_length, batch.slot);
  for (int64_t row = 0; row < batch.valid_samples; ++row) {
    std::vector<int64_t> said = targets.Integers(row);
    said.resize(
        static_cast<size_t>(std::clamp<int64_t>(lengths.Integers(row)[0], 0, targets.width)));
    const std::vector<int64_t> heard = CollapseFrames(spelled.Integers(row), subject_.blank);
    if (subject_.spelling)
      edits_->AddText(subject_.spelling->Read(heard), subject_.spelling->Read(said));
    else
      edits_->AddClasses(heard, said);
  }
  return Status();
}

// By teacher forcing: each token is written behind the true ones before it.
Status SampleCounts::AddWritten(const LoadedBatch& batch) {
  RIDGE_ASSIGN_OR_RETURN(const Rows written, OutputRows("written"));
  const Rows labels = InputRows(subject_.written, batch.slot);
  for (int64_t row = 0; row < batch.valid_samples; ++row) {
    const std::vector<int64_t> answers = written.Integers(row), truth = labels.Integers(row);
    std::vector<int64_t> heard, said;
    for (size_t i = 0; i < truth.size(); ++i) {
      if (truth[i] == subject_.ignored_label) continue;
      heard.push_back(answers[i]);
      said.push_back(truth[i]);
    }
    edits_->AddText(subject_.tokens->Read(heard), subject_.tokens->Read(said));
  }
  return Status();
}

// Boxes are compared as they lie in the network's input, cut at its edges.
Status SampleCounts::AddBoxes(const LoadedBatch& batch) {
  RIDGE_ASSIGN_OR_RETURN(const Rows detections, OutputRows("detections"));
  const Rows boxes = InputRows(subject_.boxes, batch.slot);
  const Rows classes = InputRows(subject_.box_classes, batch.slot);
  PictureFrame whole;
  whole.width = static_cast<double>(subject_.picture.width);
  whole.height = static_cast<double>(subject_.picture.height);
  std::vector<double> sides(static_cast<size_t>(boxes.width));
  std::vector<double> labels(static_cast<size_t>(classes.width));
  for (int64_t row = 0; row < batch.valid_samples; ++row) {
    detections.Read(row, row_);
    boxes.Read(row, sides);
    classes.Read(row, labels);
    std::vector<DetectedBox> found =
        DetectBoxes(row_, subject_.classes, DetectionLimits::ForPrecision());
    if (whole.width > 0) {
      for (DetectedBox& box : found) box = InPicture(box, whole);
    }
    std::vector<TrueBox> truth;
    for (size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] < 0) continue;  // behind the last box
      truth.push_back({sides[4 * i], sides[4 * i + 1], sides[4 * i + 2], sides[4 * i + 3],
                       static_cast<int64_t>(labels[i])});
    }
    precision_->Add(found, truth);
  }
  return Status();
}

Status SampleCounts::AddClasses(const LoadedBatch& batch, int64_t first) {
  RIDGE_ASSIGN_OR_RETURN(const Rows logits, OutputRows("logits"));
  const Rows labels = InputRows(subject_.label, batch.slot);
  for (int64_t row = 0; row < batch.valid_samples; ++row) {
    labels.Read(row, target_);
    const auto label = static_cast<int64_t>(target_[0]);
    if (label == subject_.ignored_label) continue;
    logits.Read(row, row_);
    classes_->Add(first + row, label, row_);
  }
  return Status();
}

Status SampleCounts::AddPixels(const LoadedBatch& batch) {
  RIDGE_ASSIGN_OR_RETURN(const Rows said, OutputRows("said"));
  const Rows labels = InputRows(subject_.label, batch.slot);
  for (int64_t row = 0; row < batch.valid_samples; ++row) {
    said.Read(row, row_);
    labels.Read(row, target_);
    for (size_t i = 0; i < row_.size(); ++i) {
      const auto label = static_cast<int64_t>(target_[i]);
      if (label != subject_.ignored_label) classes_->AddSaid(label, static_cast<int64_t>(row_[i]));
    }
  }
  return Status();
}

Status SampleCounts::AddErrors(const LoadedBatch& batch) {
  RIDGE_ASSIGN_OR_RETURN(const Rows predictions, OutputRows("prediction"));
  const Rows targets = InputRows(subject_.target, batch.slot);
  for (int64_t row = 0; row < batch.valid_samples; ++row) {
    predictions.Read(row, row_);
    targets.Read(row, target_);
    errors_->Add(row_, target_);
  }
  return Status();
}

NamedMetrics SampleCounts::Metrics(double loss) const {
  NamedMetrics metrics;
  if (classes_ && subject_.pixels) {
    AddMetric("mean_iou", classes_->MeanIou(), metrics);
    AddMetric("mean_dice", classes_->MacroF1(), metrics);
  } else if (classes_) {
    AddMetric("top5_accuracy", classes_->TopFive(), metrics);
    AddMetric("f1_macro", classes_->MacroF1(), metrics);
  }
  if (precision_) {
    AddMetric("map50", precision_->Map50(), metrics);
    AddMetric("map50_95", precision_->Map50To95(), metrics);
  }
  if (edits_) {
    AddMetric("wer", edits_->WordErrorRate(), metrics);
    AddMetric("cer", edits_->LetterErrorRate(), metrics);
  }
  if (errors_) {
    AddMetric("mse", errors_->Mse(), metrics);
    AddMetric("rmse", errors_->Rmse(), metrics);
    AddMetric("mae", errors_->Mae(), metrics);
    AddMetric("r2", errors_->R2(), metrics);
  }
  if (subject_.perplexity) AddMetric("perplexity", std::exp(loss), metrics);
  return metrics;
}

void SampleCounts::DescribeBoxes(EvaluationRecord& record) const {
  record.boxes = true;
  for (int64_t c = 0; c < precision_->classes(); ++c) {
    ClassMetrics metrics;
    metrics.name = subject_.ClassName(c);
    metrics.support = precision_->Support(c);
    metrics.ap50 = precision_->Ap50(c);
    metrics.ap50_95 = precision_->Ap50To95(c);
    record.classes.push_back(std::move(metrics));
  }
}

Status SampleCounts::Describe(const Source& source, EvaluationRecord& record) const {
  if (precision_) DescribeBoxes(record);
  if (!classes_) return Status();
  record.pixels = subject_.pixels;
  for (int64_t c = 0; c < classes_->classes(); ++c) {
    record.classes.push_back({subject_.ClassName(c), classes_->Support(c), classes_->Said(c),
                              classes_->Hits(c), classes_->Precision(c), classes_->Recall(c),
                              classes_->F1(c)});
    if (record.pixels) record.classes.back().iou = classes_->Iou(c);
  }
  record.confusion = classes_->matrix();
  for (const WrongSample& wrong : classes_->wrong()) {
    WrongRecord entry{wrong.index,
                      source.Origin(wrong.index),
                      subject_.ClassName(wrong.label),
                      subject_.ClassName(wrong.said),
                      wrong.probability,
                      {}};
    RIDGE_ASSIGN_OR_RETURN(entry.picture, ReadThumbnail(source, wrong.index));
    record.wrong.push_back(std::move(entry));
  }
  return Status();
}

Result<std::optional<Thumbnail>> ReadThumbnail(const Source& source, int64_t index) {
  for (size_t f = 0; f < source.fields().size(); ++f) {
    const TensorType& type = source.fields()[f].type;
    const std::optional<ThumbnailShape> shape = ShapeOf(type);
    if (!shape || type.elements() == 0) continue;
    std::vector<uint8_t> pixels(static_cast<size_t>(type.elements()));
    const Status read = source.ReadOne(index, static_cast<int>(f), pixels.data());
    if (IsBadRecord(read)) return {std::nullopt};  // a run that skips it has evaluated another one
    RIDGE_RETURN_IF_ERROR(read);
    return {Shrunk(*shape, pixels)};
  }
  return {std::nullopt};
}

}  // namespace ridge
