#include "tests/fake_cuda/cudnn/host_graphs.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

namespace ridge::fake_cuda {
namespace {

using Place = std::array<int64_t, RIDGE_CUDNN_MOST_DIMS>;

float OfBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

double LoadHalf(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double mantissa = bits & 1023, sign = (bits >> 15) != 0 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(mantissa + 1024, exponent - 25);
}
// To the nearest, of equally near ones the even; no infinities.
uint16_t StoreHalf(double value) {
  const double size = std::abs(value);
  const int exponent = size < 0x1p-14 ? -14 : std::ilogb(size);
  const auto steps = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  const uint32_t bits = steps < 1024 ? steps : (static_cast<uint32_t>(exponent + 14) << 10) + steps;
  return static_cast<uint16_t>(bits | (std::signbit(value) ? 0x8000u : 0u));
}

class View {
 public:
  View(const RidgeCudnnQuestion& question, const HostTensors& tensors, int slot)
      : tensor_(question.tensors[slot]), at_(tensors[static_cast<size_t>(slot)]) {}

  int64_t dim(int d) const { return tensor_.dims[d]; }
  int rank() const { return tensor_.rank; }

  double operator[](const Place& place) const {
    const int64_t i = Index(place);
    if (tensor_.type == RIDGE_CUDNN_F32) return static_cast<const float*>(at_)[i];
    const uint16_t bits = static_cast<const uint16_t*>(at_)[i];
    if (tensor_.type == RIDGE_CUDNN_F16) return LoadHalf(bits);
    return OfBits(static_cast<uint32_t>(bits) << 16);
  }
  void Set(const Place& place, double value) const {
    const int64_t i = Index(place);
    if (tensor_.type == RIDGE_CUDNN_F32) {
      static_cast<float*>(at_)[i] = static_cast<float>(value);
    } else if (tensor_.type == RIDGE_CUDNN_F16) {
      static_cast<uint16_t*>(at_)[i] = StoreHalf(value);
    } else {
      const uint32_t bits = BitsOf(static_cast<float>(value));
      static_cast<uint16_t*>(at_)[i] =
          static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
  }
  // In row-major order.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    Place place{};
    for (bool more = true; more; more = Next(place)) visit(place);
  }

 private:
  bool Next(Place& place) const {
    for (int d = rank(); d-- > 0; place[static_cast<size_t>(d)] = 0) {
      if (++place[static_cast<size_t>(d)] < dim(d)) return true;
    }
    return false;
  }
  int64_t Index(const Place& place) const {
    return std::inner_product(tensor_.strides, tensor_.strides + tensor_.rank, place.begin(),
                              int64_t{0});
  }

  const RidgeCudnnTensor& tensor_;
  void* const at_;
};

// ---- attention

class Attention {
 public:
  Attention(const RidgeCudnnQuestion& question, const HostTensors& tensors)
      : question_(question), tensors_(tensors) {}

  void Forward() const {
    log_sum_.ForEach([&](const Place& p) {
      const std::vector<double> s = Scores(p[0], p[1], p[2]);
      const double log_sum = LogSum(s);
      log_sum_.Set(p, log_sum);
      for (int64_t c = 0; c < o_.dim(3); ++c) {
        double sum = 0;
        for (int64_t j = 0; j < k_.dim(2); ++j)
          sum += At(s, j, log_sum) * v_[{p[0], Kv(p[1]), j, c}];
        o_.Set({p[0], p[1], p[2], c}, sum);
      }
    });
  }

  void Backward() const {
    const View dk = Of(RIDGE_CUDNN_DK), dv = Of(RIDGE_CUDNN_DV), dq = Of(RIDGE_CUDNN_DQ);
    std::vector<double> dks(Count(dk)), dvs(Count(dv)), dqs(Count(dq));
    log_sum_.ForEach([&](const Place& p) { AddRow(p[0], p[1], p[2], dqs, dks, dvs); });
    const auto store = [](const View& to, const std::vector<double>& sums) {
      size_t next = 0;
      to.ForEach([&](const Place& place) { to.Set(place, sums[next++]); });
    };
    store(dq, dqs);
    store(dk, dks);
    store(dv, dvs);
  }

 private:
  View Of(int slot) const { return {question_, tensors_, slot}; }
  static size_t Count(const View& view) {
    return static_cast<size_t>(view.dim(0) * view.dim(1) * view.dim(2) * view.dim(3));
  }
  static size_t Row(const View& view, int64_t b, int64_t h, int64_t i) {
    return static_cast<size_t>(((b * view.dim(1) + h) * view.dim(2) + i) * view.dim(3));
  }
  int64_t Kv(int64_t head) const { return head / (q_.dim(1) / k_.dim(1)); }

  std::vector<double> Scores(int64_t b, int64_t h, int64_t i) const {
    const int64_t keys = k_.dim(2), more = question_.causal == 2 ? keys - q_.dim(2) : 0;
    std::vector<double> scores(static_cast<size_t>(keys), -std::numeric_limits<double>::infinity());
    for (int64_t j = 0; j < keys; ++j) {
      if (question_.causal != 0 && j > i + more) break;
      double sum = 0;
      for (int64_t d = 0; d < q_.dim(3); ++d) sum += q_[{b, h, i, d}] * k_[{b, Kv(h), j, d}];
      scores[static_cast<size_t>(j)] = question_.scale * sum;
    }
    return scores;
  }
  static double LogSum(const std::vector<double>& scores) {
    const double most = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (const double s : scores) sum += std::exp(s - most);
    return most + std::log(sum);
  }
  static double At(const std::vector<double>& scores, int64_t j, double log_sum) {
    return std::exp(scores[static_cast<size_t>(j)] - log_sum);
  }

  void AddRow(int64_t b, int64_t h, int64_t i, std::vector<double>& dq, std::vector<double>& dk,
              std::vector<double>& dv) const {
    const View dy = Of(RIDGE_CUDNN_DO);
    const std::vector<double> s = Scores(b, h, i);
    double delta = 0;
    for (int64_t c = 0; c < v_.dim(3); ++c) delta += dy[{b, h, i, c}] * o_[{b, h, i, c}];
    for (int64_t j = 0; j < k_.dim(2); ++j) {
      const double p = At(s, j, log_sum_[{b, h, i, 0}]);
      double dp = 0;
      for (int64_t c = 0; c < v_.dim(3); ++c) {
        dp += dy[{b, h, i, c}] * v_[{b, Kv(h), j, c}];
        dv[Row(v_, b, Kv(h), j) + static_cast<size_t>(c)] += p * dy[{b, h, i, c}];
      }
      const double ds = question_.scale * p * (dp - delta);
      for (int64_t d = 0; d < q_.dim(3); ++d) {
        dq[Row(q_, b, h, i) + static_cast<size_t>(d)] += ds * k_[{b, Kv(h), j, d}];
        dk[Row(k_, b, Kv(h), j) + static_cast<size_t>(d)] += ds * q_[{b, h, i, d}];
      }
    }
  }

  const RidgeCudnnQuestion& question_;
  const HostTensors& tensors_;
  const View q_ = Of(RIDGE_CUDNN_Q), k_ = Of(RIDGE_CUDNN_K), v_ = Of(RIDGE_CUDNN_V),
             o_ = Of(RIDGE_CUDNN_O), log_sum_ = Of(RIDGE_CUDNN_LOG_SUM);
};

// ---- convolutions

// Calls visit(x, w) for each pair that an output sees.
template <typename Visit>
void ForEachTap(const RidgeCudnnQuestion& q, const View& x, const View& w, const Place& y,
                const Visit& visit) {
  const int64_t groups = x.dim(1) / w.dim(1), group = y[1] / (w.dim(0) / groups);
  w.ForEach([&](const Place& tap) {
    if (tap[0] != 0) return;
    Place from{y[0], group * w.dim(1) + tap[1]}, weight = tap;
    weight[0] = y[1];
    for (int a = 0; a < q.axes; ++a) {
      const auto d = static_cast<size_t>(a + 2);
      from[d] = y[d] * q.stride[a] - q.before[a] + tap[d] * q.dilation[a];
      if (from[d] < 0 || from[d] >= x.dim(a + 2)) return;
    }
    visit(from, weight);
  });
}

int64_t Position(const View& view, const Place& place) {
  int64_t position = 0;
  for (int d = 0; d < view.rank(); ++d)
    position = position * view.dim(d) + place[static_cast<size_t>(d)];
  return position;
}

void RunConv(const RidgeCudnnQuestion& q, const HostTensors& tensors) {
  const View x(q, tensors, RIDGE_CUDNN_X), w(q, tensors, RIDGE_CUDNN_W),
      y(q, tensors, RIDGE_CUDNN_Y);
  const View& out = q.op == RIDGE_CUDNN_CONV ? y : q.op == RIDGE_CUDNN_CONV_GRAD_INPUT ? x : w;
  std::vector<double> sums;
  out.ForEach([&](const Place&) { sums.push_back(0); });
  y.ForEach([&](const Place& at) {
    ForEachTap(q, x, w, at, [&](const Place& from, const Place& weight) {
      const auto add = [&](const Place& to, double value) {
        sums[static_cast<size_t>(Position(out, to))] += value;
      };
      if (q.op == RIDGE_CUDNN_CONV) add(at, x[from] * w[weight]);
      if (q.op == RIDGE_CUDNN_CONV_GRAD_INPUT) add(from, y[at] * w[weight]);
      if (q.op == RIDGE_CUDNN_CONV_GRAD_WEIGHT) add(weight, x[from] * y[at]);
    });
  });
  const View bias(q, tensors, RIDGE_CUDNN_BIAS);
  size_t next = 0;
  out.ForEach([&](const Place& at) {
    double sum = sums[next++];
    if (q.op == RIDGE_CUDNN_CONV && bias.rank() > 0) sum += bias[{0, at[1]}];
    out.Set(at, q.relu != 0 ? std::max(sum, 0.0) : sum);
  });
}

}  // namespace

const char* RefusalOf(const RidgeCudnnQuestion& q) {
  for (const RidgeCudnnTensor& tensor : q.tensors) {
    if (tensor.rank > 0 && tensor.alignment < 16) return "No valid engine configs for _";
  }
  if (q.op == RIDGE_CUDNN_ATTENTION || q.op == RIDGE_CUDNN_ATTENTION_GRAD) {
    const bool wide =
        q.tensors[RIDGE_CUDNN_Q].dims[3] % 8 != 0 || q.tensors[RIDGE_CUDNN_V].dims[3] % 8 != 0;
    return wide ? "hidden_dim should be multiple of 8" : nullptr;
  }
  const bool relu_alone = q.relu != 0 && q.tensors[RIDGE_CUDNN_BIAS].rank == 0;
  return relu_alone ? "No valid engine configs for __" : nullptr;
}

void RunGraph(const RidgeCudnnQuestion& question, const HostTensors& tensors) {
  switch (question.op) {
    case RIDGE_CUDNN_ATTENTION:
      return Attention(question, tensors).Forward();
    case RIDGE_CUDNN_ATTENTION_GRAD:
      return Attention(question, tensors).Backward();
    default:
      return RunConv(question, tensors);
  }
}

}  // namespace ridge::fake_cuda
