#include "ridge/backend/cuda/cublaslt/cublaslt.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace ridge::cuda {
namespace {

constexpr char kWheel[] = "nvidia-cublas";

// The name of a function that is not there; nullptr: all are.
const char* FindAll(void* library, LtTable& table) {
  const char* missing = nullptr;
#define RIDGE_CUBLASLT_FIND(name, ...)                                            \
  if (!FindFunction(library, "cublasLt" #name, table.name) && missing == nullptr) \
    missing = "cublasLt" #name;
  RIDGE_CUBLASLT_FUNCTIONS(RIDGE_CUBLASLT_FIND)
  RIDGE_CUBLASLT_FIND(GetVersion)
  RIDGE_CUBLASLT_FIND(GetStatusName)
#undef RIDGE_CUBLASLT_FIND
  return missing;
}

// What tells algorithms apart; a value that is usual is not named.
struct NamedAttribute {
  const char* name;
  LtAlgorithmAttribute attribute;
  size_t bytes;
  uint32_t usual;
};
constexpr NamedAttribute kAttributes[] = {
    {"tile", LtAlgorithmAttribute::kTile, 4, 0},
    {"stages", LtAlgorithmAttribute::kStages, 4, 0},
    {"splits", LtAlgorithmAttribute::kSplits, 4, 1},
    {"reduction", LtAlgorithmAttribute::kReduction, 4, 0},
    {"swizzle", LtAlgorithmAttribute::kSwizzle, 4, 0},
    {"custom", LtAlgorithmAttribute::kCustom, 4, 0},
    {"inner", LtAlgorithmAttribute::kInnerShape, 2, 0},
    {"cluster", LtAlgorithmAttribute::kCluster, 2, 0},
};

// None: the library does not tell.
std::optional<uint32_t> AttributeOf(const CublasLt& library, const LtAlgorithm& algorithm,
                                    LtAlgorithmAttribute attribute, size_t bytes) {
  uint32_t value = 0;
  size_t written = 0;
  const LtCode code =
      library.MatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, bytes, &written);
  if (code != LtCode::kSuccess) return std::nullopt;
  return value;
}

}  // namespace

std::string NameOf(const CublasLt& library, const LtAlgorithm& algorithm) {
  const auto id = AttributeOf(library, algorithm, LtAlgorithmAttribute::kId, sizeof(int32_t));
  std::string name = fmt::format("algo{}", id ? std::to_string(*id) : "");
  for (const NamedAttribute& of : kAttributes) {
    const auto value = AttributeOf(library, algorithm, of.attribute, of.bytes);
    if (value && *value != of.usual) name += fmt::format("_{}{}", of.name, *value);
  }
  return name;
}

Result<CublasLt> CublasLt::Open(const LibrarySearch& search) {
  RIDGE_ASSIGN_OR_RETURN(const OpenLibrary library,
                         OpenOptionalLibrary(search, "cuBLASLt", "libcublasLt.so.13", kWheel));
  CublasLt lt;
  lt.path = library.path;
  if (const char* missing = FindAll(library.handle, lt); missing != nullptr)
    return LacksFunction(lt.path, missing, kWheel);
  lt.version = VersionOfNumber(static_cast<int64_t>(lt.GetVersion()));
  return lt;
}

Status CublasLt::Check(LtCode code, const char* function) const {
  if (code == LtCode::kSuccess) return Status();
  return Status(ErrorCode::kDevice, fmt::format("{} failed: {} ({})", function, GetStatusName(code),
                                                static_cast<int>(code)));
}

LtDescriptors::~LtDescriptors() {
  for (LtMatrixHandle matrix : {a_, b_, y_}) {
    if (matrix != nullptr) library_->MatrixLayoutDestroy(matrix);
  }
  if (product_handle_ != nullptr) library_->MatmulDescDestroy(product_handle_);
}

Status LtDescriptors::Make(const CublasLt& library, const Product& product) {
  library_ = &library;
  product_ = product;
  const LtType scale = product.compute == LtCompute::kF64 ? LtType::kF64 : LtType::kF32;
  RIDGE_RETURN_IF_ERROR(
      RIDGE_LT(library, MatmulDescCreate, &product_handle_, product.compute, scale));
  const auto operation = [](bool transposed) { return transposed ? kLtTransposed : kLtPlain; };
  RIDGE_RETURN_IF_ERROR(Set(LtProductAttribute::kTransposeA, operation(product.transpose_b)));
  RIDGE_RETURN_IF_ERROR(Set(LtProductAttribute::kTransposeB, operation(product.transpose_a)));
  uint32_t epilogue = (product.relu ? kLtRelu : 0) | (product.has_bias ? kLtBias : 0);
  if (epilogue == 0) epilogue = kLtDefault;
  RIDGE_RETURN_IF_ERROR(Set(LtProductAttribute::kEpilogue, epilogue));
  if (product.has_bias) RIDGE_RETURN_IF_ERROR(Set(LtProductAttribute::kBiasType, product.y.type));
  return MakeMatrices();
}

Status LtDescriptors::MakeMatrices() {
  RIDGE_RETURN_IF_ERROR(MakeMatrix(product_.a, a_));
  RIDGE_RETURN_IF_ERROR(MakeMatrix(product_.b, b_));
  return MakeMatrix(product_.y, y_);
}

Status LtDescriptors::MakeMatrix(const ProductMatrix& matrix, LtMatrixHandle& made) const {
  RIDGE_RETURN_IF_ERROR(RIDGE_LT(*library_, MatrixLayoutCreate, &made, matrix.type,
                                 static_cast<uint64_t>(matrix.columns),
                                 static_cast<uint64_t>(matrix.rows), matrix.columns));
  if (matrix.batch == 1) return Status();
  const auto batch = static_cast<int32_t>(matrix.batch);
  RIDGE_RETURN_IF_ERROR(RIDGE_LT(*library_, MatrixLayoutSetAttribute, made,
                                 LtMatrixAttribute::kBatch, &batch, sizeof batch));
  return RIDGE_LT(*library_, MatrixLayoutSetAttribute, made, LtMatrixAttribute::kBatchStride,
                  &matrix.batch_stride, sizeof matrix.batch_stride);
}

Status LtDescriptors::SetPreference(LtPreferenceHandle preference, const LtLimits& limits) const {
  using Attribute = LtPreferenceAttribute;
  const auto set = [&](Attribute attribute, const auto& value) {
    return RIDGE_LT(*library_, MatmulPreferenceSetAttribute, preference, attribute, &value,
                    sizeof value);
  };
  const auto align = [&](Attribute attribute, const ProductMatrix& matrix) {
    return set(attribute, static_cast<uint32_t>(matrix.AlignmentBytes(limits.alignment_bytes)));
  };
  RIDGE_RETURN_IF_ERROR(
      set(Attribute::kWorkspaceBytes, static_cast<uint64_t>(limits.workspace_bytes)));
  RIDGE_RETURN_IF_ERROR(
      set(Attribute::kReductions, kLtReduceInComputeType | kLtReduceInOutputType));
  RIDGE_RETURN_IF_ERROR(align(Attribute::kAlignmentA, product_.b));
  RIDGE_RETURN_IF_ERROR(align(Attribute::kAlignmentB, product_.a));
  RIDGE_RETURN_IF_ERROR(align(Attribute::kAlignmentC, product_.y));
  return align(Attribute::kAlignmentD, product_.y);
}

Result<std::vector<LtHeuristic>> LtDescriptors::Choose(LtHandle handle, const LtLimits& limits,
                                                       int most) const {
  LtPreferenceHandle preference = nullptr;
  RIDGE_RETURN_IF_ERROR(RIDGE_LT(*library_, MatmulPreferenceCreate, &preference));
  std::vector<LtHeuristic> found(static_cast<size_t>(most));
  int count = 0;
  Status status = SetPreference(preference, limits);
  if (status.ok()) {
    status = RIDGE_LT(*library_, MatmulAlgoGetHeuristic, handle, product_handle_, b_, a_, y_, y_,
                      preference, most, found.data(), &count);
  }
  library_->MatmulPreferenceDestroy(preference);
  RIDGE_RETURN_IF_ERROR(status);
  found.resize(static_cast<size_t>(count));
  const LtCode first = found.empty() ? LtCode::kNotSupported : found.front().state;
  std::erase_if(found, [](const LtHeuristic& one) { return one.state != LtCode::kSuccess; });
  if (found.empty())
    RIDGE_RETURN_IF_ERROR(library_->Check(first, "cublasLtMatmulAlgoGetHeuristic"));
  return found;
}

Status LtDescriptors::Enqueue(LtHandle handle, StreamHandle stream, const LtAlgorithm& algorithm,
                              const Operands& operands) {
  static constexpr float kOnes[2] = {1, 0};
  static constexpr double kWideOnes[2] = {1, 0};
  const bool wide = product_.compute == LtCompute::kF64;
  const auto scale = [wide](bool on) {
    const int at = on ? 0 : 1;
    return wide ? static_cast<const void*>(&kWideOnes[at]) : &kOnes[at];
  };
  if (product_.has_bias) RIDGE_RETURN_IF_ERROR(Set(LtProductAttribute::kBias, operands.bias));
  const bool adds = operands.added != nullptr;
  return RIDGE_LT(*library_, Matmul, handle, product_handle_, scale(true), operands.b, b_,
                  operands.a, a_, scale(adds), adds ? operands.added : operands.y, y_, operands.y,
                  y_, &algorithm, operands.workspace, operands.workspace_bytes, stream);
}

}  // namespace ridge::cuda
