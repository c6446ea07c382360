#include "ridge/onnx/file/model.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include "onnx/onnx-ml.pb.h"
#include "ridge/onnx/file/model_check.h"
#include "ridge/onnx/file/tensor.h"

namespace ridge {
namespace {

constexpr int64_t kMostMessageBytes = std::numeric_limits<int32_t>::max();
// All sparse initializers of a model together, dense.
constexpr int64_t kMostSparseBytes = int64_t{128} << 20;

Status Bad(const std::string& name, const std::string& text) {
  return Status(ErrorCode::kInvalidModel, name + ": " + text);
}

// An error of the file itself has its name already.
Status Prefixed(const std::string& name, const Status& status) {
  if (status.ok() || status.message().starts_with(name + ": ")) return status;
  return PrintableOnnxStatus(Status(status.code(), name + ": " + status.message()));
}

Status NoMessage() {
  return Status(ErrorCode::kInvalidModel,
                "is no ONNX model: its bytes are no protobuf message of the type ModelProto, or "
                "it nests more than 100 deep");
}

Result<OwnedFd> OpenRegular(const std::string& path) {
  // Opening a pipe must not wait for its other end.
  OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return Bad(path, fmt::format("can't be opened: {}", std::strerror(errno)));
  struct stat facts = {};
  if (::fstat(fd.get(), &facts) != 0) return Bad(path, std::strerror(errno));
  if (!S_ISREG(facts.st_mode)) return Bad(path, "is no regular file");
  if (facts.st_size > kMostMessageBytes) {
    return Bad(path, fmt::format("has {} bytes; an ONNX message has at most {}: larger models keep "
                                 "their tensors in external data",
                                 facts.st_size, kMostMessageBytes));
  }
  return fd;
}

// For looking at the message's structure; tensors are read, never mapped.
class MappedFile {
 public:
  static Result<MappedFile> Map(int fd, const std::string& path) {
    struct stat facts = {};
    if (::fstat(fd, &facts) != 0) return Bad(path, std::strerror(errno));
    MappedFile file;
    const auto size = static_cast<size_t>(facts.st_size);
    if (size == 0) return file;
    void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED) return Bad(path, fmt::format("map: {}", std::strerror(errno)));
    file.owner_ = std::shared_ptr<void>(at, [size](void* p) { ::munmap(p, size); });
    file.bytes_ = {static_cast<const char*>(at), size};
    return file;
  }
  std::string_view bytes() const { return bytes_; }

 private:
  std::shared_ptr<void> owner_;
  std::string_view bytes_;
};

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string(".") : path.substr(0, slash + 1);
}

OnnxDim DescribeDim(const onnx::TensorShapeProto::Dimension& proto, const std::string& input,
                    int axis) {
  if (proto.has_dim_value() && proto.dim_value() >= 0) return {proto.dim_value(), ""};
  // "?" is what older exporters write for any extent: two of them need not be equal.
  const std::string& name = proto.dim_param();
  if (!name.empty() && name != "?" && name != "-1" && name != "None") return {-1, name};
  return {-1, fmt::format("{}_{}", input, axis)};
}

}  // namespace

OnnxValueInfo DescribeOnnxValue(const onnx::ValueInfoProto& proto) {
  OnnxValueInfo info;
  info.name = proto.name();
  const std::optional<DType> dtype = proto.type().has_tensor_type()
                                         ? DTypeFromOnnx(proto.type().tensor_type().elem_type())
                                         : std::nullopt;
  info.supported = dtype.has_value();
  if (!dtype) return info;
  info.dtype = *dtype;
  info.has_shape = proto.type().tensor_type().has_shape();
  const auto& shape = proto.type().tensor_type().shape();
  for (int axis = 0; axis < shape.dim_size(); ++axis) {
    info.dims.push_back(DescribeDim(shape.dim(axis), info.name, axis));
  }
  return info;
}

std::string OnnxFunctionKey(const std::string& domain, const std::string& name,
                            const std::string& overload) {
  std::string key = (domain == "ai.onnx" ? "" : domain) + "::" + name;
  if (!overload.empty()) key += ":" + overload;
  return key;
}

OnnxModel::OnnxModel(std::string name, std::string folder)
    : name_(std::move(name)),
      folder_(std::move(folder)),
      external_files_(std::make_unique<ExternalFiles>(folder_)),
      proto_(std::make_unique<onnx::ModelProto>()) {}
OnnxModel::OnnxModel(OnnxModel&&) noexcept = default;
OnnxModel& OnnxModel::operator=(OnnxModel&&) noexcept = default;
OnnxModel::~OnnxModel() = default;

Result<OnnxModel> OnnxModel::Open(const std::string& path) {
  RIDGE_ASSIGN_OR_RETURN(OwnedFd fd, OpenRegular(path));
  RIDGE_ASSIGN_OR_RETURN(const auto tensors,
                         TensorFile::Adopt(std::move(fd), path, ErrorCode::kInvalidModel));
  RIDGE_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Map(tensors->fd(), path));
  OnnxModel model(path, FolderOf(path));
  std::map<int, SkippedTensor> left_out;
  RIDGE_RETURN_IF_ERROR(Prefixed(path, model.ParseMessage(file.bytes(), left_out)));
  // Pages of the mapping come in pieces of up to 2 MiB: they go before tensors come.
  file = MappedFile();
  const auto in_file = [&](const onnx::TensorProto& proto, const SkippedTensor& numbers) {
    return TensorOfFile(proto, tensors, numbers.offset, numbers.bytes);
  };
  RIDGE_RETURN_IF_ERROR(Prefixed(path, model.Check(left_out, in_file)));
  return model;
}

Result<OnnxModel> OnnxModel::Parse(std::string bytes, const std::string& name,
                                   const std::string& folder) {
  OnnxModel model(name, folder);
  std::map<int, SkippedTensor> left_out;
  RIDGE_RETURN_IF_ERROR(Prefixed(name, model.ParseMessage(bytes, left_out)));
  const auto copied = [&](const onnx::TensorProto& proto, const SkippedTensor& numbers) {
    return ReadTensor(proto, numbers.bytes, [&](void* to) {
      std::memcpy(to, bytes.data() + numbers.offset, static_cast<size_t>(numbers.bytes));
      return Status();
    });
  };
  RIDGE_RETURN_IF_ERROR(Prefixed(name, model.Check(left_out, copied)));
  return model;
}

Status OnnxModel::ParseMessage(std::string_view bytes, std::map<int, SkippedTensor>& left_out) {
  if (bytes.size() > size_t{kMostMessageBytes} || !ParseModelMessage(bytes, *proto_, left_out))
    return NoMessage();
  message_bytes_ = static_cast<int64_t>(bytes.size());
  return Status();
}

Status OnnxModel::Check(const std::map<int, SkippedTensor>& left_out, const TakeLeftOut& take) {
  RIDGE_RETURN_IF_ERROR(CheckOnnxModel(*proto_));
  RIDGE_RETURN_IF_ERROR(TakeInitializers(left_out, take));
  RIDGE_RETURN_IF_ERROR(DescribeInputs());
  return IndexFunctions();
}

Status OnnxModel::AddInitializer(const std::string& name, Result<Tensor> tensor) {
  RIDGE_RETURN_IF_ERROR(tensor.status());
  if (name.empty()) return Status(ErrorCode::kInvalidModel, "an initializer has no name");
  if (initializers_.emplace(name, std::move(*tensor)).second) return Status();
  return Status(ErrorCode::kInvalidModel,
                fmt::format("the graph has two initializers '{}'", name.substr(0, 200)));
}

Status OnnxModel::TakeInitializers(const std::map<int, SkippedTensor>& left_out,
                                   const TakeLeftOut& take) {
  for (int i = 0; i < proto_->graph().initializer_size(); ++i) {
    onnx::TensorProto& proto = *proto_->mutable_graph()->mutable_initializer(i);
    const auto numbers = left_out.find(i);
    const bool in_message =
        numbers == left_out.end() || proto.data_location() == onnx::TensorProto::EXTERNAL;
    RIDGE_RETURN_IF_ERROR(AddInitializer(proto.name(), in_message
                                                           ? TakeTensor(proto, *external_files_)
                                                           : take(proto, numbers->second)));
  }
  int64_t sparse_bytes = kMostSparseBytes;
  for (const onnx::SparseTensorProto& proto : proto_->graph().sparse_initializer()) {
    const std::string& name = proto.values().name();
    RIDGE_RETURN_IF_ERROR(AddInitializer(name, DenseTensor(proto, sparse_bytes)));
    sparse_bytes -= initializers_.at(name).bytes();
  }
  for (const onnx::NodeProto& node : proto_->graph().node()) {
    for (const std::string& output : node.output()) {
      if (initializers_.count(output) == 0) continue;
      return Status(ErrorCode::kInvalidModel,
                    fmt::format("'{}' is an initializer and made by {} '{}' too", output,
                                node.op_type(), node.name()));
    }
  }
  return Status();
}

Status OnnxModel::DescribeInputs() {
  for (const onnx::ValueInfoProto& input : proto_->graph().input()) {
    if (initializers_.count(input.name()) == 0) inputs_.push_back(DescribeOnnxValue(input));
  }
  for (const onnx::ValueInfoProto& output : proto_->graph().output()) {
    outputs_.push_back(DescribeOnnxValue(output));
  }
  for (const OnnxValueInfo& input : inputs_) {
    Dims fixed;
    for (const OnnxDim& dim : input.dims) fixed.push_back(dim.extent < 0 ? 1 : dim.extent);
    RIDGE_RETURN_IF_ERROR(Prefixed(fmt::format("input '{}'", input.name), CheckDims(fixed)));
  }
  return Status();
}

Status OnnxModel::IndexFunctions() {
  for (const onnx::FunctionProto& function : proto_->functions()) {
    const std::string key =
        OnnxFunctionKey(function.domain(), function.name(), function.overload());
    if (!functions_.emplace(key, &function).second) {
      return Status(ErrorCode::kInvalidModel,
                    fmt::format("has two functions '{}'", key.substr(0, 200)));
    }
  }
  return CheckOnnxFunctions(*proto_);
}

int64_t OnnxModel::opset(const std::string& domain) const {
  const bool standard = domain.empty() || domain == "ai.onnx";
  for (const onnx::OperatorSetIdProto& opset : proto_->opset_import()) {
    const bool is_standard = opset.domain().empty() || opset.domain() == "ai.onnx";
    if (standard ? is_standard : opset.domain() == domain) return opset.version();
  }
  return 0;
}

const onnx::FunctionProto* OnnxModel::FindFunction(const onnx::NodeProto& node) const {
  if (functions_.empty()) return nullptr;
  const auto found =
      functions_.find(OnnxFunctionKey(node.domain(), node.op_type(), node.overload()));
  return found == functions_.end() ? nullptr : found->second;
}

}  // namespace ridge
