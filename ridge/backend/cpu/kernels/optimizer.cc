// adam_update and sgd_update, f32: one sweep over all arrays, 28 bytes a parameter for Adam, which
// is the memory limit; normal stores (measured: streaming stores are slower here).
#include <cmath>

#include "ridge/backend/cpu/kernels/kernels.h"
#include "ridge/backend/cpu/kernels/update_runs.h"
#include "ridge/backend/cpu/parallel.h"

namespace ridge::cpu {
namespace {

constexpr int64_t kGrain = 1024;  // threads never share a cache line

double LoadLr(DType dtype, const void* lr) { return LoadAsDouble(dtype, lr, 0); }

class AdamKernel : public Kernel {
 public:
  AdamKernel(const OpCall& call, int threads)
      : call_(call), elements_(call.inputs[0].elements()), threads_(threads) {}

  Status Run(const KernelBuffers& b) override {
    const AdamNumbers numbers = Numbers(LoadLr(call_.inputs[4].dtype, b.inputs[4]),
                                        *static_cast<const int64_t*>(b.inputs[5]));
    const auto in = [&](size_t i) { return static_cast<const float*>(b.inputs[i]); };
    const auto out = [&](size_t i) { return static_cast<float*>(b.outputs[i]); };
    const AdamArrays arrays{in(0), in(1), in(2), in(3), out(0), out(1), out(2)};
    ParallelFor(threads_, elements_, kGrain,
                [&](int64_t begin, int64_t end) { AdamRun(numbers, arrays, begin, end); });
    return Status();
  }

 private:
  AdamNumbers Numbers(double lr, int64_t step) const {
    const double beta1 = call_.number("beta1"), beta2 = call_.number("beta2");
    const double decay = call_.number("weight_decay"), t = static_cast<double>(step);
    const bool decoupled = call_.integer("decoupled") != 0;
    const auto f = [](double x) { return static_cast<float>(x); };
    return {.beta1 = f(beta1),
            .one_minus_beta1 = f(1 - beta1),
            .beta2 = f(beta2),
            .one_minus_beta2 = f(1 - beta2),
            .step_size = f(lr / (1 - std::pow(beta1, t))),
            .v_correction = f(std::sqrt(1 - std::pow(beta2, t))),
            .epsilon = f(call_.number("epsilon")),
            .decay_grad = f(decoupled ? 0 : decay),
            .decay_param = f(decoupled ? 1 - lr * decay : 1)};
  }

  const OpCall call_;
  const int64_t elements_;
  const int threads_;
};

class SgdKernel : public Kernel {
 public:
  SgdKernel(const OpCall& call, int threads)
      : call_(call),
        elements_(call.inputs[0].elements()),
        threads_(threads),
        has_buffer_(call.has_input(3)) {}

  Status Run(const KernelBuffers& b) override {
    const SgdNumbers numbers{static_cast<float>(LoadLr(call_.inputs[2].dtype, b.inputs[2])),
                             static_cast<float>(call_.number("momentum")),
                             static_cast<float>(call_.number("weight_decay")),
                             call_.integer("nesterov") != 0};
    const SgdArrays arrays{static_cast<const float*>(b.inputs[0]),
                           static_cast<const float*>(b.inputs[1]),
                           has_buffer_ ? static_cast<const float*>(b.inputs[3]) : nullptr,
                           static_cast<float*>(b.outputs[0]),
                           has_buffer_ ? static_cast<float*>(b.outputs[1]) : nullptr};
    ParallelFor(threads_, elements_, kGrain,
                [&](int64_t begin, int64_t end) { SgdRun(numbers, arrays, begin, end); });
    return Status();
  }

 private:
  const OpCall call_;
  const int64_t elements_;
  const int threads_;
  const bool has_buffer_;
};

}  // namespace

const char* OfferOptimizer(const Question& q, std::vector<KernelChoice>& choices) {
  if (AnyEmpty(q.call)) return refusal::kEmpty;
  if (q.call.inputs[0].dtype != DType::kF32) return refusal::kDType;
  KernelChoice choice = MakeChoice(q, "cpu." + q.op.name);
  SetKey(q, choice);
  choices.push_back(std::move(choice));
  return nullptr;
}

Result<std::unique_ptr<Kernel>> CreateAdamUpdate(const CpuContext& cpu, const OpDef& op,
                                                 const OpCall& call, const KernelChoice&) {
  return std::unique_ptr<Kernel>(std::make_unique<AdamKernel>(call, ThreadsFor(cpu, op, call)));
}

Result<std::unique_ptr<Kernel>> CreateSgdUpdate(const CpuContext& cpu, const OpDef& op,
                                                const OpCall& call, const KernelChoice&) {
  return std::unique_ptr<Kernel>(std::make_unique<SgdKernel>(call, ThreadsFor(cpu, op, call)));
}

}  // namespace ridge::cpu
