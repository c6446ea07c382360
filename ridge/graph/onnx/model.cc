// The file is read through a small buffer straight into the message, whose byte strings the tensors
// then take over: a byte of weights is in memory once.  Tensors in subgraphs and in attributes are
// read when they are asked for.
#include "ridge/graph/onnx/model.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <set>

#include "onnx/onnx-ml.pb.h"
#include "ridge/graph/onnx/tensor.h"

namespace ridge {
namespace {

constexpr int64_t kOldestIr = 3, kNewestIr = 14;
constexpr int64_t kOldestOpset = 7, kNewestOpset = 28;
constexpr int kReadBytes = 1 << 18;

Status Refuse(const std::string& file, const std::string& text) {
  return Status(ErrorCode::kInvalidModel, file + ": " + text);
}

class FileStream : public google::protobuf::io::CopyingInputStream {
 public:
  explicit FileStream(int fd) : fd_(fd) {}
  ~FileStream() override { close(fd_); }
  int Read(void* buffer, int size) override {
    ssize_t count = 0;
    do {
      count = read(fd_, buffer, static_cast<size_t>(size));
    } while (count < 0 && errno == EINTR);
    return static_cast<int>(count);
  }

 private:
  int fd_;
};

Status ParseFile(const std::string& path, onnx::ModelProto& proto) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Refuse(path, std::strerror(errno));
  FileStream file(fd);
  google::protobuf::io::CopyingInputStreamAdaptor stream(&file, kReadBytes);
  google::protobuf::io::CodedInputStream coded(&stream);
  if (proto.ParseFromCodedStream(&coded) && coded.ConsumedEntireMessage()) return Status();
  return Refuse(path, "is no ONNX model: the message is cut off or broken");
}

OnnxDim DimFromProto(const onnx::TensorShapeProto::Dimension& dim, const std::string& made_name) {
  if (dim.has_dim_value() && dim.dim_value() >= 0) return {dim.dim_value(), ""};
  return {-1, dim.dim_param().empty() ? made_name : dim.dim_param()};
}

OnnxValueInfo InfoFromProto(const onnx::ValueInfoProto& proto) {
  OnnxValueInfo info;
  info.name = proto.name();
  const onnx::TypeProto::Tensor& type = proto.type().tensor_type();
  const std::optional<DType> dtype = DTypeFromOnnx(type.elem_type());
  info.supported = proto.type().has_tensor_type() && dtype.has_value();
  info.dtype = dtype.value_or(DType::kF32);
  info.has_shape = type.has_shape();
  for (int d = 0; d < type.shape().dim_size(); ++d)
    info.dims.push_back(DimFromProto(type.shape().dim(d), fmt::format("{}_{}", info.name, d)));
  return info;
}

Status CheckVersions(const onnx::ModelProto& proto, const std::string& name, int64_t opset) {
  if (proto.ir_version() < kOldestIr || proto.ir_version() > kNewestIr) {
    return Status(ErrorCode::kUnsupported,
                  fmt::format("{}: has IR version {}; {} to {} are read", name, proto.ir_version(),
                              kOldestIr, kNewestIr));
  }
  if (opset == 0) return Refuse(name, "imports no version of the operator set ai.onnx");
  if (opset >= kOldestOpset && opset <= kNewestOpset) return Status();
  return Status(ErrorCode::kUnsupported,
                fmt::format("{}: has opset {}; {} to {} are read. hint: onnx.version_converter "
                            "brings a file to another opset",
                            name, opset, kOldestOpset, kNewestOpset));
}

}  // namespace

OnnxModel::OnnxModel() : proto_(std::make_unique<onnx::ModelProto>()) {}
OnnxModel::OnnxModel(OnnxModel&&) noexcept = default;
OnnxModel& OnnxModel::operator=(OnnxModel&&) noexcept = default;
OnnxModel::~OnnxModel() = default;

Result<OnnxModel> OnnxModel::Open(const std::string& path) {
  OnnxModel model;
  model.name_ = path;
  const size_t slash = path.rfind('/');
  model.folder_ = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  RIDGE_RETURN_IF_ERROR(ParseFile(path, *model.proto_));
  RIDGE_RETURN_IF_ERROR(model.Index());
  return model;
}

Result<OnnxModel> OnnxModel::Parse(std::string bytes, const std::string& name,
                                   const std::string& folder) {
  OnnxModel model;
  model.name_ = name;
  model.folder_ = folder;
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()) ||
      !model.proto_->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Refuse(name, "is no ONNX model: the message is cut off or broken");
  }
  RIDGE_RETURN_IF_ERROR(model.Index());
  return model;
}

Status OnnxModel::Index() {
  if (!proto_->has_graph()) return Refuse(name_, "holds no graph");
  RIDGE_RETURN_IF_ERROR(CheckVersions(*proto_, name_, opset("")));
  onnx::GraphProto& graph = *proto_->mutable_graph();
  auto add = [&](const std::string& name, Result<Tensor> tensor) {
    if (!tensor.ok())
      return Status(tensor.status().code(), name_ + ": " + tensor.status().message());
    if (initializers_.emplace(name, std::move(*tensor)).second) return Status();
    return Refuse(name_, fmt::format("two initializers are named '{}'", name));
  };
  for (onnx::TensorProto& tensor : *graph.mutable_initializer())
    RIDGE_RETURN_IF_ERROR(add(tensor.name(), TakeTensor(tensor, folder_)));
  for (const onnx::SparseTensorProto& tensor : graph.sparse_initializer())
    RIDGE_RETURN_IF_ERROR(add(tensor.values().name(), DenseTensor(tensor)));
  std::set<std::string> seen;
  for (const onnx::ValueInfoProto& input : graph.input()) {
    if (input.name().empty()) return Refuse(name_, "an input has no name");
    if (!seen.insert(input.name()).second)
      return Refuse(name_, fmt::format("two inputs are named '{}'", input.name()));
    if (!initializers_.contains(input.name())) inputs_.push_back(InfoFromProto(input));
  }
  for (const onnx::ValueInfoProto& output : graph.output())
    outputs_.push_back(InfoFromProto(output));
  return Status();
}

int64_t OnnxModel::opset(const std::string& domain) const {
  const bool standard = domain.empty() || domain == "ai.onnx";
  for (const onnx::OperatorSetIdProto& set : proto_->opset_import()) {
    const bool is_standard = set.domain().empty() || set.domain() == "ai.onnx";
    if (standard ? is_standard : set.domain() == domain) return set.version();
  }
  return 0;
}

}  // namespace ridge
