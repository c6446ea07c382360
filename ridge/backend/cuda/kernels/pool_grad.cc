// max_pool_grad, avg_pool_grad: each element of dx gathers from the windows that hold it, in their
// order.
#include <fmt/format.h>

#include "ridge/backend/cuda/kernels/pool_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"

namespace ridge::cuda {
namespace {

constexpr std::string_view kPoolGradText = R"cuda(
typedef $R R;
RIDGE_KERNEL void pool_grad($index_parameter const $T* dy, $T* dx) {
  for (Index e = (Index)Thread(); e < $inputs; e += (Index)Threads()) {
    const Index x = e % AxisX::kInput, y = e / AxisX::kInput % AxisY::kInput;
    const Index z = e / (AxisX::kInput * AxisY::kInput) % AxisZ::kInput;
    const Index plane = e / $inputs_of_plane * $outputs_of_plane;
    R sum = 0;
    for (Index oz = AxisZ::FirstOutput(z); oz < AxisZ::EndOutput(z); ++oz) {
      const Index kz = AxisZ::TapAt(oz, z);
      if (kz < 0) continue;
      for (Index oy = AxisY::FirstOutput(y); oy < AxisY::EndOutput(y); ++oy) {
        const Index ky = AxisY::TapAt(oy, y);
        if (ky < 0) continue;
        for (Index ox = AxisX::FirstOutput(x); ox < AxisX::EndOutput(x); ++ox) {
          const Index kx = AxisX::TapAt(ox, x);
          if (kx < 0) continue;
          const Index at = plane + (oz * AxisY::kOutput + oy) * AxisX::kOutput + ox;
$add        }
      }
    }
    Store(dx, e, sum);
  }
}
)cuda";

constexpr const char* kAddWinner =
    "          if ((Index)index[at] == (kz * AxisY::kKernel + ky) * AxisX::kKernel + kx)\n"
    "            sum += (R)Load(dy, at);\n";
constexpr const char* kAddShare =
    "          const Index counted = AxisZ::Taps(oz) * AxisY::Taps(oy) * AxisX::Taps(ox);\n"
    "          sum += (R)Load(dy, at) / (R)(counted > 1 ? counted : 1);\n";

const char* WritePoolGrad(const OpDef& op, const OpCall& call, KernelText& text) {
  if (!StoresAll(call)) return refusal::kDType;
  const bool max = op.name == "max_pool_grad";
  const PoolGeometry g = PoolGeometryOf(call);
  const TensorType& dx = call.outputs[0];
  text.source =
      PoolAxesText(g, !max && call.integer("count_include_pad") != 0) +
      FillText(kPoolGradText,
               {{"T", StorageType(dx.dtype)},
                {"R", ComputeType(dx.dtype)},
                {"index_parameter",
                 max ? fmt::format("const {}* index,", StorageType(call.inputs[0].dtype)) : ""},
                {"inputs", std::to_string(dx.elements())},
                {"outputs_of_plane", std::to_string(g.window.outputs())},
                {"inputs_of_plane", std::to_string(g.window.inputs())},
                {"add", max ? kAddWinner : kAddShare}});
  std::vector<Argument> arguments = {Argument::Input(0)};
  if (max) arguments.push_back(Argument::Input(1));
  arguments.push_back(Argument::Output(0));
  text.launches = {{"pool_grad", BlocksFor(dx.elements()), kBlockThreads, arguments}};
  return nullptr;
}

}  // namespace

TextKernelDef PoolGradTextKernel() {
  return {
      .name = "cuda.pool_grad", .ops = {"max_pool_grad", "avg_pool_grad"}, .write = WritePoolGrad};
}

}  // namespace ridge::cuda
