// File name, first record and tag metadata are those of TensorBoard's own writer
// (tensorboard/summary/writer/event_file_writer.py).  Scalars are `simple_value`, which TensorBoard
// says it goes on to read, with the metadata of the scalars plugin at a tag's first value.
// Histograms are tensors of (left, right, count); hyperparameters lie in the metadata of an empty
// tensor.
#include "ridge/observe/event_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <utility>

#include "ridge/core/crc32c.h"
#include "ridge/observe/tensorboard.pb.h"

namespace ridge {
namespace {

std::string HostName() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return name.data();
}

// The counter tells writers of one process apart that start in the same second.
Result<OutputFile> OpenNewFile(const std::string& folder, double wall_s) {
  constexpr int kMaxFiles = 1000;
  for (int counter = 0;; ++counter) {
    const std::string path =
        fmt::format("{}/events.out.tfevents.{:010}.{}.{}.{}", folder, static_cast<int64_t>(wall_s),
                    HostName(), ::getpid(), counter);
    if (counter < kMaxFiles && ::access(path.c_str(), F_OK) == 0) continue;
    return OutputFile::Open(path, OutputFile::Mode::kNew);
  }
}

std::string LittleEndian(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}

tensorboard::TensorData BucketTensor(std::span<const HistogramBucket> buckets) {
  tensorboard::TensorData tensor;
  tensor.set_dtype(tensorboard::TensorData::DOUBLE);
  tensor.mutable_tensor_shape()->add_dim()->set_size(static_cast<int64_t>(buckets.size()));
  tensor.mutable_tensor_shape()->add_dim()->set_size(3);
  std::string& content = *tensor.mutable_tensor_content();
  for (const HistogramBucket& bucket : buckets) {
    for (const double number : {bucket.left, bucket.right, bucket.count})
      content += LittleEndian(std::bit_cast<uint64_t>(number), 8);
  }
  return tensor;
}

tensorboard::HparamsValue ValueOf(const Hyperparameter& hyperparameter) {
  tensorboard::HparamsValue value;
  if (const auto* number = std::get_if<double>(&hyperparameter.value)) {
    value.set_number_value(*number);
  } else if (const auto* truth = std::get_if<bool>(&hyperparameter.value)) {
    value.set_bool_value(*truth);
  } else {
    value.set_string_value(std::get<std::string>(hyperparameter.value));
  }
  return value;
}

void SetTensorPlugin(const char* plugin, tensorboard::SummaryMetadata& metadata) {
  metadata.mutable_plugin_data()->set_plugin_name(plugin);
  metadata.set_data_class(tensorboard::SummaryMetadata::TENSOR);
}

}  // namespace

std::string FrameRecord(std::string_view payload) {
  std::string record = LittleEndian(payload.size(), 8);
  record += LittleEndian(MaskCrc32c(Crc32c(record)), 4);
  record += payload;
  record += LittleEndian(MaskCrc32c(Crc32c(payload)), 4);
  return record;
}

EventWriter::EventWriter(OutputFile file, EventWriterOptions options)
    : file_(std::move(file)), options_(std::move(options)) {}

Result<std::unique_ptr<EventWriter>> EventWriter::Create(const std::string& folder,
                                                         EventWriterOptions options) {
  const double now_s = options.wall_seconds();
  RIDGE_ASSIGN_OR_RETURN(OutputFile file, OpenNewFile(folder, now_s));
  std::unique_ptr<EventWriter> writer(new EventWriter(std::move(file), std::move(options)));
  RIDGE_RETURN_IF_ERROR(writer->Begin());
  return writer;
}

Status EventWriter::Begin() {
  last_sync_s_ = options_.wall_seconds();
  tensorboard::Event first;
  first.set_wall_time(last_sync_s_);
  first.set_file_version("brain.Event:2");
  first.mutable_source_metadata()->set_writer("ridge");
  RIDGE_RETURN_IF_ERROR(Write(first.SerializeAsString()));
  if (!options_.resumed_step) return Status();
  tensorboard::Event start;
  start.set_wall_time(last_sync_s_);
  start.set_step(*options_.resumed_step + 1);
  start.mutable_session_log()->set_status(tensorboard::SessionLog::START);
  return Write(start.SerializeAsString());
}

Status EventWriter::AddScalar(std::string_view tag, int64_t step, double value) {
  const ScalarValue scalar{tag, value};
  return AddScalars(step, {&scalar, 1});
}

Status EventWriter::AddScalars(int64_t step, std::span<const ScalarValue> values) {
  if (values.empty()) return Status();
  tensorboard::Event event;
  event.set_wall_time(options_.wall_seconds());
  event.set_step(step);
  for (const ScalarValue& scalar : values) {
    tensorboard::Summary::Value* value = event.mutable_summary()->add_value();
    value->set_tag(scalar.tag.data(), scalar.tag.size());
    value->set_simple_value(static_cast<float>(scalar.value));
    if (known_tags_.contains(scalar.tag)) continue;
    value->mutable_metadata()->mutable_plugin_data()->set_plugin_name("scalars");
    value->mutable_metadata()->set_data_class(tensorboard::SummaryMetadata::SCALAR);
  }
  RIDGE_RETURN_IF_ERROR(Write(event.SerializeAsString()));
  for (const ScalarValue& scalar : values) known_tags_.emplace(scalar.tag);
  if (event.wall_time() - last_sync_s_ < options_.sync_every_s) return Status();
  return Flush();
}

Status EventWriter::AddHistogram(std::string_view tag, int64_t step,
                                 std::span<const HistogramBucket> buckets) {
  if (buckets.empty()) return Status();
  tensorboard::Event event;
  event.set_wall_time(options_.wall_seconds());
  event.set_step(step);
  tensorboard::Summary::Value* value = event.mutable_summary()->add_value();
  value->set_tag(tag.data(), tag.size());
  *value->mutable_tensor() = BucketTensor(buckets);
  if (!known_tags_.contains(tag)) SetTensorPlugin("histograms", *value->mutable_metadata());
  RIDGE_RETURN_IF_ERROR(Write(event.SerializeAsString()));
  known_tags_.emplace(tag);
  return Status();
}

Status EventWriter::AddPicture(std::string_view tag, int64_t step, const EventPicture& picture) {
  tensorboard::Event event;
  event.set_wall_time(options_.wall_seconds());
  event.set_step(step);
  tensorboard::Summary::Value* value = event.mutable_summary()->add_value();
  value->set_tag(tag.data(), tag.size());
  value->mutable_image()->set_height(static_cast<int32_t>(picture.height));
  value->mutable_image()->set_width(static_cast<int32_t>(picture.width));
  value->mutable_image()->set_colorspace(3);
  value->mutable_image()->set_encoded_image(picture.png);
  return Write(event.SerializeAsString());
}

Status EventWriter::AddGraph(std::span<const GraphNode> nodes) {
  constexpr int kProducer = 22;  // of the version that TensorBoard's own writers name
  tensorboard::Graph graph;
  graph.mutable_versions()->set_producer(kProducer);
  for (const GraphNode& node : nodes) {
    tensorboard::NodeDef* def = graph.add_node();
    def->set_name(node.name);
    def->set_op(node.op);
    for (const std::string& input : node.inputs) def->add_input(input);
    auto* shapes = (*def->mutable_attr())["_output_shapes"].mutable_list();
    for (const Dims& dims : node.shapes) {
      tensorboard::TensorShape* shape = shapes->add_shape();
      for (const int64_t extent : dims) shape->add_dim()->set_size(extent);
    }
  }
  tensorboard::Event event;
  event.set_wall_time(options_.wall_seconds());
  event.set_graph(graph.SerializeAsString());
  return Write(event.SerializeAsString());
}

Status EventWriter::AddSessionStart(std::span<const Hyperparameter> hyperparameters) {
  tensorboard::HparamsPluginData data;
  tensorboard::SessionStartInfo* start = data.mutable_session_start_info();
  start->set_start_time_secs(options_.wall_seconds());
  for (const Hyperparameter& hyperparameter : hyperparameters)
    (*start->mutable_hparams())[hyperparameter.name] = ValueOf(hyperparameter);
  return WriteSession("_hparams_/session_start_info", data.SerializeAsString());
}

Status EventWriter::AddSessionEnd(bool succeeded) {
  tensorboard::HparamsPluginData data;
  tensorboard::SessionEndInfo* end = data.mutable_session_end_info();
  end->set_status(succeeded ? tensorboard::SessionEndInfo::SUCCESS
                            : tensorboard::SessionEndInfo::FAILURE);
  end->set_end_time_secs(options_.wall_seconds());
  return WriteSession("_hparams_/session_end_info", data.SerializeAsString());
}

// At step 0, as TensorBoard's own writer has it.
Status EventWriter::WriteSession(std::string_view tag, std::string_view content) {
  tensorboard::Event event;
  event.set_wall_time(options_.wall_seconds());
  tensorboard::Summary::Value* value = event.mutable_summary()->add_value();
  value->set_tag(tag.data(), tag.size());
  value->mutable_tensor()->set_dtype(tensorboard::TensorData::FLOAT);
  value->mutable_tensor()->mutable_tensor_shape()->add_dim();  // of size 0
  SetTensorPlugin("hparams", *value->mutable_metadata());
  value->mutable_metadata()->mutable_plugin_data()->set_content(content.data(), content.size());
  return Write(event.SerializeAsString());
}

Status EventWriter::Write(std::string_view record) { return file_.Append(FrameRecord(record)); }

Status EventWriter::Flush() {
  last_sync_s_ = options_.wall_seconds();
  return file_.Sync();
}

Status EventWriter::Close() { return file_.Close(); }

}  // namespace ridge
