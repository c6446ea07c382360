// WriteOnnx: both files are written beside their places, synced, and renamed: the data first, so
// that a model never stands beside data of another one for longer than between two renames.
// New files are made with O_EXCL and O_NOFOLLOW; rename replaces a link, it does not follow it.
#include <fcntl.h>
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "onnx/onnx-ml.pb.h"
#include "ridge/core/files.h"
#include "ridge/core/output_file.h"
#include "ridge/onnx/export/export.h"
#include "ridge/onnx/file/external_data.h"
#include "ridge/onnx/file/tensor.h"

namespace ridge {
namespace {

constexpr int64_t kAlignment = 4096;   // of tensors in the data file: they can be mapped
constexpr int64_t kSmallBytes = 1024;  // shapes and scalars stay in the model
constexpr int64_t kMostMessage = INT32_MAX;

Status Failure(const std::string& path, const char* what) {
  return Status(ErrorCode::kUnavailable,
                fmt::format("{}: could not be {}: {}", path, what, std::strerror(errno)));
}

// A new file beside `final_path` that becomes it, or goes away.
class NewFile {
 public:
  static Result<NewFile> Make(const std::string& final_path) {
    NewFile file;
    file.final_path_ = final_path;
    file.path_ = fmt::format("{}.new-{}", final_path, getpid());
    RIDGE_ASSIGN_OR_RETURN(OutputFile out, OutputFile::Open(file.path_, OutputFile::Mode::kNew));
    file.out_.emplace(std::move(out));
    return file;
  }
  NewFile(NewFile&& other) noexcept
      : final_path_(std::move(other.final_path_)),
        path_(std::move(other.path_)),
        out_(std::move(other.out_)) {
    other.path_.clear();
  }
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile() {
    if (!path_.empty()) unlink(path_.c_str());
  }

  OutputFile& out() { return *out_; }
  Status Rename() {
    RIDGE_RETURN_IF_ERROR(out_->Close());
    if (std::rename(path_.c_str(), final_path_.c_str()) != 0)
      return Failure(final_path_, "written");
    path_.clear();
    return Status();
  }

 private:
  NewFile() = default;
  std::string final_path_, path_;
  std::optional<OutputFile> out_;
};

// Protobuf's way into an OutputFile.
class FileSink : public google::protobuf::io::CopyingOutputStream {
 public:
  explicit FileSink(OutputFile& file) : file_(file) {}
  bool Write(const void* buffer, int size) override {
    status_ = file_.Append({static_cast<const char*>(buffer), static_cast<size_t>(size)});
    return status_.ok();
  }
  const Status& status() const { return status_; }

 private:
  OutputFile& file_;
  Status status_;
};

Status WriteMessage(const onnx::ModelProto& proto, OutputFile& file) {
  if (proto.ByteSizeLong() > static_cast<size_t>(kMostMessage)) {
    return Status(ErrorCode::kUnsupported,
                  fmt::format("{}: the message has {} bytes without its tensors; protobuf's limit "
                              "is {}",
                              file.path(), proto.ByteSizeLong(), kMostMessage));
  }
  FileSink sink(file);
  google::protobuf::io::CopyingOutputStreamAdaptor stream(&sink, 1 << 18);
  bool written = false;
  {
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    written = proto.SerializeToCodedStream(&coded) && !coded.HadError();
  }
  if (!stream.Flush() || !written) {
    return sink.status().ok() ? Failure(file.path(), "written") : sink.status();
  }
  return Status();
}

// What says where and which the bytes are; name, type, dims and comments stay.
void ClearContents(onnx::TensorProto& proto) {
  proto.clear_raw_data();
  proto.clear_float_data();
  proto.clear_int32_data();
  proto.clear_int64_data();
  proto.clear_double_data();
  proto.clear_uint64_data();
  proto.clear_external_data();
  proto.clear_data_location();
}

void SetEntry(onnx::TensorProto& proto, const char* key, const std::string& value) {
  onnx::StringStringEntryProto& entry = *proto.add_external_data();
  entry.set_key(key);
  entry.set_value(value);
}

// The bytes as ONNX has them; those of 8 bits and more are the tensor's own.
std::string_view StoredBytes(const Tensor& tensor, onnx::TensorProto& packed) {
  StoreTensor(tensor, "", packed);
  return packed.raw_data();
}

Status AppendTensor(const Tensor& tensor, const std::string& location, OutputFile& data,
                    onnx::TensorProto& proto) {
  const int64_t padding = (kAlignment - data.size_bytes() % kAlignment) % kAlignment;
  RIDGE_RETURN_IF_ERROR(data.Append(std::string(static_cast<size_t>(padding), '\0')));
  const int64_t offset = data.size_bytes();
  onnx::TensorProto packed;
  RIDGE_RETURN_IF_ERROR(data.Append(StoredBytes(tensor, packed)));
  proto.set_data_type(packed.data_type());
  proto.mutable_dims()->CopyFrom(packed.dims());
  proto.set_data_location(onnx::TensorProto::EXTERNAL);
  SetEntry(proto, "location", location);
  SetEntry(proto, "offset", std::to_string(offset));
  SetEntry(proto, "length", std::to_string(data.size_bytes() - offset));
  return Status();
}

int64_t ContentBytes(const OnnxDocument& document) {
  int64_t bytes = static_cast<int64_t>(document.proto->ByteSizeLong());
  for (const auto& [name, tensor] : document.contents) bytes += tensor.bytes() + 16;
  return bytes;
}

// The contents go into the message, or with `data` those that are large into that file.  A tensor
// is let go once it is stored, so that no more than one is in memory twice.
Status StoreContents(OnnxDocument& document, const std::string& location, OutputFile* data) {
  for (onnx::TensorProto& proto : *document.proto->mutable_graph()->mutable_initializer()) {
    auto found = document.contents.extract(proto.name());
    RIDGE_CHECK(!found.empty(), "initializer '" + proto.name() + "' has no contents");
    const Tensor& tensor = found.mapped();
    ClearContents(proto);
    if (data != nullptr && tensor.bytes() > kSmallBytes) {
      RIDGE_RETURN_IF_ERROR(AppendTensor(tensor, location, *data, proto));
    } else {
      StoreTensor(tensor, proto.name(), proto);
    }
  }
  return Status();
}

}  // namespace

Result<OnnxFiles> WriteOnnx(OnnxDocument document, const std::string& path,
                            const OnnxWriteOptions& options) {
  const size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (name.empty() || name == "." || name == "..") {
    return Status(ErrorCode::kInvalidArgument, fmt::format("'{}' is no name of a file", path));
  }
  OnnxFiles files;
  files.model = path;
  std::optional<NewFile> data;
  if (ContentBytes(document) > options.inline_bytes) {
    files.data = path + ".data";
    RIDGE_ASSIGN_OR_RETURN(NewFile made, NewFile::Make(files.data));
    data.emplace(std::move(made));
  }
  RIDGE_RETURN_IF_ERROR(StoreContents(document, name + ".data", data ? &data->out() : nullptr));
  RIDGE_ASSIGN_OR_RETURN(NewFile model, NewFile::Make(path));
  RIDGE_RETURN_IF_ERROR(WriteMessage(*document.proto, model.out()));
  files.bytes = model.out().size_bytes() + (data ? data->out().size_bytes() : 0);
  if (data) RIDGE_RETURN_IF_ERROR(data->Rename());
  RIDGE_RETURN_IF_ERROR(model.Rename());
  RIDGE_RETURN_IF_ERROR(SyncPath(slash == std::string::npos ? "." : path.substr(0, slash + 1)));
  return files;
}

}  // namespace ridge
