// The algorithms of a call are asked for once, when it is planned, and kept: they say the
// workspace, and the bits.
#include "ridge/backend/cuda/cublaslt/matmul_library.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "ridge/backend/cuda/cublaslt/cublaslt.h"
#include "ridge/backend/cuda/cuda_backend.h"
#include "ridge/backend/cuda/cuda_kernel.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/core/rounding.h"

namespace ridge::cuda {
namespace {

constexpr std::string_view kKernelName = "cublaslt.matmul";
constexpr int kMostAlgorithms = 8;  // of a call, where they are timed
constexpr int64_t kAlignmentBytes = 256, kLtMiB = int64_t{1} << 20;
// NVIDIA's advice: from compute capability 9.0 on, and before.
constexpr int64_t kMostWorkspace = 32 * kLtMiB, kMostWorkspaceBefore9 = 4 * kLtMiB;

struct Algorithm {
  LtAlgorithm bytes = {};
  int64_t workspace_bytes = 0;
  std::string kernel;  // "cublaslt.matmul/algo66_tile20_stages36"
};

// What cuBLASLt answers to a call.
struct Answer {
  std::string refusal;  // "": the others are set
  Product product = {};
  std::vector<Algorithm> algorithms = {};  // the library's best first

  // In front of an algorithm's workspace: the bias in y's type.
  int64_t BiasBytes() const {
    const int64_t element_bytes = 2;
    return product.narrows_bias ? RoundUp(product.y.columns * element_bytes, kAlignmentBytes) : 0;
  }
};

class MatmulKernel : public Kernel {
 public:
  MatmulKernel(CudaContext& context, const CublasLt& library, LtHandle handle, const Answer& answer,
               const Algorithm& algorithm)
      : context_(context),
        library_(library),
        handle_(handle),
        product_(answer.product),
        bias_bytes_(answer.BiasBytes()),
        algorithm_(algorithm) {}

  // `narrow_bias`: a cast of the bias; null where it needs none.
  Status Make(std::unique_ptr<Kernel> narrow_bias) {
    narrow_bias_ = std::move(narrow_bias);
    return descriptors_.Make(library_, product_);
  }

  Status Enqueue(Stream& stream, const KernelBuffers& buffers) override {
    auto* workspace = static_cast<std::byte*>(buffers.workspace);
    const void* bias = product_.has_bias ? buffers.inputs[kBiasAt] : nullptr;
    if (narrow_bias_ != nullptr) {
      void* const narrow = workspace;
      RIDGE_RETURN_IF_ERROR(narrow_bias_->Enqueue(stream, {{&bias, 1}, {&narrow, 1}, nullptr}));
      bias = narrow;
    }
    if (!context_.Ready()) return context_.error();
    const void* const added =
        product_.added < 0 ? nullptr : buffers.inputs[static_cast<size_t>(product_.added)];
    const Status enqueued =
        descriptors_.Enqueue(handle_, static_cast<CudaStream&>(stream).handle(), algorithm_.bytes,
                             {buffers.inputs[0], buffers.inputs[1], bias, added, buffers.outputs[0],
                              algorithm_.workspace_bytes > 0 ? workspace + bias_bytes_ : nullptr,
                              static_cast<size_t>(algorithm_.workspace_bytes)});
    context_.Keep(context_.OfLibrary(enqueued));
    return context_.error();
  }

 private:
  static constexpr size_t kBiasAt = 2;

  CudaContext& context_;
  const CublasLt& library_;
  const LtHandle handle_;
  const Product product_;
  const int64_t bias_bytes_;
  const Algorithm algorithm_;
  LtDescriptors descriptors_;
  std::unique_ptr<Kernel> narrow_bias_;
};

class MatmulLibrary : public KernelLibrary {
 public:
  MatmulLibrary(CudaDevice& device, CublasLt library, LibrarySearch search,
                const LibraryOptions& options)
      : device_(device),
        library_(std::move(library)),
        search_(std::move(search)),
        options_(options),
        version_(fmt::format("cuBLASLt {}", library_.version)) {}
  ~MatmulLibrary() override {
    if (handle_ != nullptr && device_.context().Enter().ok()) library_.Destroy(handle_);
  }
  Status Begin() {
    RIDGE_RETURN_IF_ERROR(device_.context().Enter());
    return RIDGE_LT(library_, Create, &handle_);
  }

  const std::string& version() const override { return version_; }
  const std::string& path() const override { return library_.path; }
  bool Knows(const OpDef& op) const override { return op.name == "matmul"; }
  bool Makes(const KernelChoice& choice) const override {
    return choice.kernel.starts_with(kKernelName);
  }

  void AddCandidates(const OpDef& op, const OpCall& call, std::span<const LayoutId> /*available*/,
                     KernelCandidates& found) override {
    const std::string key = CallKey(op, call);
    const Answer& answer = AnswerTo(key, call);
    if (!answer.refusal.empty()) {
      found.refusals.push_back({std::string(kKernelName), answer.refusal});
      return;
    }
    for (const Algorithm& algorithm : answer.algorithms) {
      KernelChoice choice = RowMajorChoice(op, call, algorithm.kernel);
      choice.workspace_bytes = answer.BiasBytes() + algorithm.workspace_bytes;
      if (answer.product.added >= 0) choice.in_place = {{0, answer.product.added}};
      choice.key = algorithm.kernel + (options_.tf32 ? " tf32 " : " ") + key;
      found.choices.push_back(std::move(choice));
    }
  }

  Result<std::unique_ptr<Kernel>> Create(const OpDef& op, const OpCall& call,
                                         const KernelChoice& choice) override {
    const Answer& answer = AnswerTo(CallKey(op, call), call);
    const auto algorithm =
        std::find_if(answer.algorithms.begin(), answer.algorithms.end(), [&](const Algorithm& one) {
          return one.kernel == choice.kernel &&
                 answer.BiasBytes() + one.workspace_bytes == choice.workspace_bytes;
        });
    if (algorithm == answer.algorithms.end()) {
      return Status(ErrorCode::kUnsupported,
                    fmt::format("{}: {} has no {} of {} bytes of workspace for it{}", call.where,
                                VersionAndPath(*this), choice.kernel, choice.workspace_bytes,
                                answer.refusal.empty() ? "" : ": " + answer.refusal));
    }
    auto kernel =
        std::make_unique<MatmulKernel>(device_.context(), library_, handle_, answer, *algorithm);
    std::unique_ptr<Kernel> narrow_bias;
    if (answer.product.narrows_bias) {
      RIDGE_ASSIGN_OR_RETURN(narrow_bias, MakeCast(call));
    }
    RIDGE_RETURN_IF_ERROR(kernel->Make(std::move(narrow_bias)));
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

 private:
  // Kept by `key`, that of the call: references stay valid.
  const Answer& AnswerTo(const std::string& key, const OpCall& call) {
    const std::lock_guard hold(lock_);
    const auto [at, is_new] = answers_.try_emplace(key);
    if (is_new) at->second = Ask(call);
    return at->second;
  }

  Answer Ask(const OpCall& call) {
    Answer answer;
    if (const char* reason = DescribeProduct(call, options_.tf32, answer.product);
        reason != nullptr) {
      answer.refusal = reason;
      return answer;
    }
    Result<std::vector<Algorithm>> algorithms = AlgorithmsFor(answer.product);
    answer.refusal = algorithms.status().message();
    if (algorithms.ok()) answer.algorithms = std::move(*algorithms);
    return answer;
  }

  Result<std::vector<Algorithm>> AlgorithmsFor(const Product& product) {
    RIDGE_RETURN_IF_ERROR(device_.context().Enter());
    LtDescriptors descriptors;
    RIDGE_RETURN_IF_ERROR(descriptors.Make(library_, product));
    const bool before9 = device_.gpu().major < 9;
    RIDGE_ASSIGN_OR_RETURN(
        const std::vector<LtHeuristic> found,
        descriptors.Choose(handle_,
                           {before9 ? kMostWorkspaceBefore9 : kMostWorkspace, kAlignmentBytes},
                           options_.all_kernels ? kMostAlgorithms : 1));
    std::vector<Algorithm> algorithms;
    std::set<std::string> names;
    for (const LtHeuristic& one : found) {
      std::string kernel = fmt::format("{}/{}", kKernelName, NameOf(library_, one.algorithm));
      if (!names.insert(kernel).second) continue;
      algorithms.push_back(
          {one.algorithm, static_cast<int64_t>(one.workspace_bytes), std::move(kernel)});
    }
    return algorithms;
  }

  // Of the bias, into y's type.
  Result<std::unique_ptr<Kernel>> MakeCast(const OpCall& product) {
    const OpDef& cast = *FindOp("cast");
    const TensorType& bias = product.inputs[2];
    const DType to = product.outputs[0].dtype;
    OpCall call{.where = product.where,
                .inputs = {bias},
                .outputs = {{to, bias.dims}},
                .attrs = cast.attr_defaults};
    call.attrs["to"] = std::string(DTypeName(to));
    RIDGE_ASSIGN_OR_RETURN(WrittenKernel written, WriteKernel(cast, call));
    RIDGE_ASSIGN_OR_RETURN(std::shared_ptr<CudaModule> module, ModuleOf(written.text.source));
    return CudaKernel::Create(device_.context(), std::move(module),
                              std::move(written.text.launches));
  }

  Result<std::shared_ptr<CudaModule>> ModuleOf(const std::string& source) {
    std::shared_ptr<CudaModule>& module = casts_[source];
    if (module != nullptr) return module;
    RIDGE_ASSIGN_OR_RETURN(KernelCompiler compiler,
                           KernelCompiler::Open(device_.gpu(), CubinFolder(), search_));
    RIDGE_ASSIGN_OR_RETURN(const std::string code, compiler.Compile(source));
    RIDGE_ASSIGN_OR_RETURN(module, CudaModule::Load(device_.context(), code));
    return module;
  }

  CudaDevice& device_;
  const CublasLt library_;
  const LibrarySearch search_;
  const LibraryOptions options_;
  const std::string version_;
  LtHandle handle_ = nullptr;
  std::mutex lock_;
  std::map<std::string, Answer> answers_;                     // by CallKey
  std::map<std::string, std::shared_ptr<CudaModule>> casts_;  // by source
};

}  // namespace

Result<std::unique_ptr<KernelLibrary>> OpenCublasLt(CudaDevice& device, const LibrarySearch& search,
                                                    const LibraryOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(CublasLt library, CublasLt::Open(search));
  auto made = std::make_unique<MatmulLibrary>(device, std::move(library), search, options);
  const Status begun = made->Begin();
  if (!begun.ok()) return Status(ErrorCode::kUnsupported, begun.message());
  return std::unique_ptr<KernelLibrary>(std::move(made));
}

}  // namespace ridge::cuda
