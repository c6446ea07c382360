// OnnxModel: one ONNX file, checked, with its small tensors in memory.
//
// Large initializers stay in the file, or in that of their external data, until their numbers are
// wanted (Tensor::in_memory()); the file stays open for them.  Small ones take over the message's
// byte strings.  Nothing outside the model's folder is read, no link is followed, and sizes are
// compared with the file before anything is allocated.  Movable; imported tensors share its storage
// and may outlive it.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ridge/core/tensor.h"
#include "ridge/onnx/file/external_data.h"
#include "ridge/onnx/file/message_parts.h"

namespace onnx {
class FunctionProto;
class ModelProto;
class NodeProto;
class TensorProto;
class ValueInfoProto;
}  // namespace onnx

namespace ridge {

// One extent of an input: fixed, or a name that must be bound ("batch"; "x_0" when the file gives
// none).
struct OnnxDim {
  int64_t extent = -1;  // -1: open
  std::string name;     // "" when fixed
};

struct OnnxValueInfo {
  std::string name;
  DType dtype = DType::kF32;
  bool has_shape = false;  // outputs may have none
  std::vector<OnnxDim> dims;
  bool supported = true;  // false: a sequence, a string, a type we don't hold
};

class OnnxModel {
 public:
  // Fails with kInvalidModel: a missing file, not ONNX, a broken or over-sized tensor, a name made
  // twice, external data outside the folder, functions that call themselves; kUnsupported: an IR
  // version newer than 14, an ai.onnx operator set other than 6 to 28.
  static Result<OnnxModel> Open(const std::string& path);
  // `folder` holds external data; empty: there must be none.  `name` is for messages.
  static Result<OnnxModel> Parse(std::string bytes, const std::string& name,
                                 const std::string& folder = "");
  OnnxModel(OnnxModel&&) noexcept;
  OnnxModel& operator=(OnnxModel&&) noexcept;
  ~OnnxModel();

  const std::string& name() const { return name_; }  // the file's path
  const onnx::ModelProto& proto() const { return *proto_; }
  // Inputs without an initializer of the same name, in order.
  const std::vector<OnnxValueInfo>& inputs() const { return inputs_; }
  const std::vector<OnnxValueInfo>& outputs() const { return outputs_; }
  // Tensors of the main graph by name, large ones in their file; the message no longer holds their
  // bytes.
  const std::map<std::string, Tensor>& initializers() const { return initializers_; }
  // Version of the operator set of a domain ("" is ai.onnx); 0 when the file has none.
  int64_t opset(const std::string& domain) const;
  // The model-local function that a node calls; nullptr when it calls none.
  const onnx::FunctionProto* FindFunction(const onnx::NodeProto& node) const;
  // Where relative external data lies.
  const std::string& folder() const { return folder_; }
  // For tensors that the message has beside initializers.
  ExternalFiles& external_files() const { return *external_files_; }
  // Of the message and of the external files that were needed so far.
  int64_t file_bytes() const { return message_bytes_ + external_files_->size_bytes(); }

 private:
  // The tensor of a proto whose numbers were left out of the message.
  using TakeLeftOut =
      std::function<Result<Tensor>(const onnx::TensorProto& proto, const SkippedTensor& numbers)>;

  OnnxModel(std::string name, std::string folder);
  // The message without its large tensors, whose places are put into left_out.
  Status ParseMessage(std::string_view bytes, std::map<int, SkippedTensor>& left_out);
  // The rest: the structure, the tensors, inputs, functions.
  Status Check(const std::map<int, SkippedTensor>& left_out, const TakeLeftOut& take);
  Status TakeInitializers(const std::map<int, SkippedTensor>& left_out, const TakeLeftOut& take);
  Status AddInitializer(const std::string& name, Result<Tensor> tensor);
  Status DescribeInputs();
  Status IndexFunctions();

  std::string name_, folder_;
  int64_t message_bytes_ = 0;
  std::unique_ptr<ExternalFiles> external_files_;
  std::unique_ptr<onnx::ModelProto> proto_;
  std::vector<OnnxValueInfo> inputs_, outputs_;
  std::map<std::string, Tensor> initializers_;
  std::map<std::string, const onnx::FunctionProto*> functions_;  // by OnnxFunctionKey
};

// What the file says of a value.  Negative extents are open, as some exporters write them.
OnnxValueInfo DescribeOnnxValue(const onnx::ValueInfoProto& proto);
// "domain::name" or "domain::name:overload", where "" and "ai.onnx" are the same domain.
std::string OnnxFunctionKey(const std::string& domain, const std::string& name,
                            const std::string& overload);

}  // namespace ridge
