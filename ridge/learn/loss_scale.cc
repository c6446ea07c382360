// Halving and doubling are exact, so a gradient has the same bits at every scale, unless it leaves
// the range of f16.  The sum over all gradients is the test for infinities and NaN: each of them
// makes it infinite or NaN whatever the order, and it reads a gradient once.
#include "ridge/learn/loss_scale.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

namespace ridge {
namespace {

constexpr double kLeastAdvised = 128, kMostAdvised = 65536;
constexpr double kSmallestF16 = 0x1p-24, kLargestF16 = 65504;

}  // namespace

Result<LossScaleOptions> ParseLossScale(const std::string& text) {
  if (text.empty() || text == "dynamic") return LossScaleOptions();
  double scale = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, scale);
  if (error == std::errc() && rest == end && scale >= kLeastLossScale && scale <= kMostLossScale)
    return LossScaleOptions{.dynamic = false, .scale = scale};
  return InvalidArgument(
      fmt::format("--loss-scale is '{}'; it must be dynamic, or a number from {} to {}", text,
                  kLeastLossScale, kMostLossScale));
}

std::string LossScaleDoubt(double scale) {
  if (scale < kLeastAdvised) {
    return fmt::format("a loss scale of {} is below {}: gradients below {:.1e} become 0 in f16",
                       scale, kLeastAdvised, kSmallestF16 / scale);
  }
  if (scale > kMostAdvised) {
    return fmt::format(
        "a loss scale of {} is above {}: gradients above {:.1e} are infinite in f16, whose largest "
        "number is {}, and their updates do not happen",
        scale, kMostAdvised, kLargestF16 / scale, kLargestF16);
  }
  return "";
}

LossScale::LossScale(GraphBuilder& b, const LossScaleOptions& options) : b_(b), options_(options) {
  const auto state = [&](const char* name, double first) {
    return b.State(name, {DType::kF32, {}}, Init::Constant(first), ValueRole::kOptimizer);
  };
  scale_ = options.dynamic ? state(kLossScaleState, options.scale)
                           : b.Scalar(DType::kF32, options.scale);
}

Value LossScale::Scaled(Value loss) const {
  if (!b_.ok()) return {};
  return loss * Cast(scale_, loss.dtype());
}

Value LossScale::Inverse() const { return b_.ok() ? 1 / scale_ : Value(); }

Value LossScale::AllFinite(const std::vector<Value>& values) {
  Value sum;
  for (const Value value : values) {
    const Value part = Cast(Sum(value), DType::kF32);
    sum = sum.valid() ? sum + part : part;
  }
  return Abs(sum) <= std::numeric_limits<float>::max();  // false for NaN
}

// Sums over slices and micro batches are no statistics.
void LossScale::SelectStatistics(GraphBuilder& b, Value finite) {
  if (!b.ok()) return;
  const std::vector<GraphUpdate> updates = b.graph().updates();
  b.graph().ClearUpdates();
  for (const GraphUpdate& update : updates) {
    const Value variable = b.At(update.variable), value = b.At(update.value);
    const bool is_sum = b.graph().value(update.variable).role == ValueRole::kGradient;
    b.Update(variable, is_sum ? value : Where(finite, value, variable));
  }
}

Value LossScale::Step() {
  updates_ = b_.State(kUpdatesState, {DType::kI64, {}}, Init::Zeros(), ValueRole::kOptimizer);
  return updates_ + 1;
}

void LossScale::Append(Value finite) {
  if (!b_.ok()) return;
  b_.Update(updates_, updates_ + Cast(finite, DType::kI64));
  if (options_.dynamic) AppendDynamic(finite);
}

void LossScale::AppendDynamic(Value finite) {
  const Value good =
      b_.State(kGoodUpdatesState, {DType::kF32, {}}, Init::Zeros(), ValueRole::kOptimizer);
  const Value zero = ScalarLike(good, 0);
  const Value counted = Where(finite, good + 1, zero);
  const Value grows = counted >= static_cast<double>(options_.growth_interval);
  const Value most = ScalarLike(scale_, kMostLossScale);
  const Value doubled = Minimum(scale_ * 2, most);
  const Value least = ScalarLike(scale_, kLeastLossScale);
  const Value halved = Maximum(scale_ * 0.5, least);
  const Value kept = Where(grows, doubled, scale_);
  b_.Update(scale_, Where(finite, kept, halved));
  b_.Update(good, Where(grows, zero, counted));
}

}  // namespace ridge
