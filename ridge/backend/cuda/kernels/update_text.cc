#include "ridge/backend/cuda/kernels/update_text.h"

#include <fmt/format.h>

#include <cmath>

#include "ridge/graph/ops/shared/optimizer.h"

namespace ridge::cuda {
namespace {

constexpr int64_t kUpdatePackBytes = 16;

constexpr std::string_view kPackText =
    R"cuda(    const Pack<$T, $pack> param_p = LoadPack<$pack>(param_in, group);
    const Pack<$T, $pack> grad_p = LoadPack<$pack>(grad_in, group);
    Pack<$T, $pack> param_q;
$load_packs
#pragma unroll
    for (int k = 0; k < $pack; ++k) {
      const R param = (R)Load(param_p.at, k), grad = (R)Load(grad_p.at, k)$scaled;
$load
$step
$store
      Store(param_q.at, k, next);
    }
    StorePack(param_out, group, param_q);
$store_packs)cuda";

constexpr const char* kAdamScalars =
    R"cuda(  const R lr = (R)Load(lr_in, 0), t = (R)Load(step_in, 0);
  const R step_size = lr / -expm1(t * $log_beta1);
  const R correction = sqrt(-expm1(t * $log_beta2)), kept = $kept;)cuda";
constexpr const char* kAdamStep = R"cuda(      const R g = $gradient;
      m = $beta1 * m + $rest1 * g;
      v = $beta2 * v + $rest2 * g * g;
      const R next = param * kept - step_size * m / (sqrt(v) / correction + $epsilon);)cuda";
constexpr const char* kSgdScalars = "  const R lr = (R)Load(lr_in, 0);";

}  // namespace

UpdateText AdamText(const OpCall& call) {
  const double beta1 = call.number("beta1"), beta2 = call.number("beta2");
  const bool decoupled = call.integer("decoupled") != 0;
  const std::string decay = Literal(call.number("weight_decay"));
  UpdateText update{.moments = {{call, kAdamM, "m"}, {call, kAdamV, "v"}},
                    .scalars = {4, 5},
                    .names = {"lr", "step"},
                    .rng = kAdamM.rng,
                    .apply = kAdamApply};
  update.scalars_text =
      FillText(kAdamScalars, {{"log_beta1", Literal(std::log(beta1))},
                              {"log_beta2", Literal(std::log(beta2))},
                              {"kept", decoupled ? "R(1) - lr * " + decay : "R(1)"}});
  update.step =
      FillText(kAdamStep, {{"gradient", decoupled ? "grad" : "grad + " + decay + " * param"},
                           {"beta1", Literal(beta1)},
                           {"rest1", Literal(1 - beta1)},
                           {"beta2", Literal(beta2)},
                           {"rest2", Literal(1 - beta2)},
                           {"epsilon", Literal(call.number("epsilon"))}});
  return update;
}

UpdateText SgdText(const OpCall& call) {
  const std::string momentum = Literal(call.number("momentum"));
  UpdateText update{.scalars = {2}, .names = {"lr"}, .rng = kSgdBuffer.rng, .apply = kSgdApply};
  update.scalars_text = kSgdScalars;
  update.step =
      fmt::format("      R g = grad + {} * param;\n", Literal(call.number("weight_decay")));
  if (call.has_input(kSgdBuffer.input)) {
    update.moments = {{call, kSgdBuffer, "buffer"}};
    update.step += fmt::format("      buffer = {} * buffer + g;\n", momentum);
    update.step += call.integer("nesterov") != 0
                       ? fmt::format("      g += {} * buffer;\n", momentum)
                       : "      g = buffer;\n";
  }
  update.step += "      const R next = param - lr * g;";
  return update;
}

int UpdatePack(DType dtype, int64_t elements) {
  const int64_t pack = kUpdatePackBytes / BytesPerElement(dtype);
  return elements % pack == 0 ? static_cast<int>(pack) : 1;
}

std::string PackText(const UpdateText& update, const std::string& stored, int pack, bool has_scale,
                     const std::string& store) {
  const auto of_moments = [&](const auto& text) {
    std::string all;
    for (const MomentText& moment : update.moments) all += text(moment);
    return all;
  };
  return FillText(kPackText,
                  {{"T", stored},
                   {"pack", std::to_string(pack)},
                   {"scaled", has_scale ? " * grad_scale" : ""},
                   {"load_packs", of_moments([&](auto& m) { return m.LoadPackText(pack); })},
                   {"load", of_moments([](auto& m) { return m.ElementText(); })},
                   {"step", update.step},
                   {"store", store + of_moments([](auto& m) { return m.StoreElementText(); })},
                   {"store_packs", of_moments([](auto& m) { return m.StorePackText(); })}});
}

}  // namespace ridge::cuda
