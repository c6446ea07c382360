#include "ridge/runtime/mesh_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ridge/backend/host_kernel.h"
#include "ridge/dist/rank_doing.h"
#include "ridge/dist/rank_group.h"
#include "ridge/plan/mesh_nodes.h"
#include "ridge/runtime/rank_kernels.h"

namespace ridge {
namespace {

enum class How : uint8_t { kSum, kMax, kMin };

How HowOf(const OpCall& call) {
  const std::string& how = call.text("reduce");
  if (how == "max") return How::kMax;
  return how == "min" ? How::kMin : How::kSum;
}

template <typename T>
T Reduced(How how, T a, T b) {
  if (how == How::kSum) return static_cast<T>(a + b);
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(b)) return b;
  }
  const bool takes = how == How::kMax ? b > a : b < a;
  return takes ? b : a;
}

template <typename T>
void ReduceTyped(How how, const std::byte* from, std::byte* to, int64_t count) {
  const T* x = reinterpret_cast<const T*>(from);
  T* y = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < count; ++i) y[i] = Reduced(how, y[i], x[i]);
}

// to = reduced(to, from).  16-bit floats are rounded after each.
void ReduceInto(DType dtype, How how, const std::byte* from, std::byte* to, int64_t count) {
  switch (dtype) {
    case DType::kF32:
      return ReduceTyped<float>(how, from, to, count);
    case DType::kF64:
      return ReduceTyped<double>(how, from, to, count);
    case DType::kI64:
      return ReduceTyped<int64_t>(how, from, to, count);
    case DType::kI32:
      return ReduceTyped<int32_t>(how, from, to, count);
    default:
      for (int64_t i = 0; i < count; ++i)
        StoreFromDouble(dtype, to, i,
                        Reduced(how, LoadAsDouble(dtype, to, i), LoadAsDouble(dtype, from, i)));
  }
}

void CopyOut(const PartsOfDim& parts, int64_t coordinate, const std::byte* whole, std::byte* part) {
  const auto bytes = static_cast<size_t>(parts.run_bytes);
  for (int64_t r = 0; r < parts.runs; ++r)
    std::memcpy(part + r * parts.run_bytes,
                whole + (r * parts.ranks + coordinate) * parts.run_bytes, bytes);
}

void CopyIn(const PartsOfDim& parts, int64_t coordinate, const std::byte* part, std::byte* whole) {
  const auto bytes = static_cast<size_t>(parts.run_bytes);
  for (int64_t r = 0; r < parts.runs; ++r)
    std::memcpy(whole + (r * parts.ranks + coordinate) * parts.run_bytes,
                part + r * parts.run_bytes, bytes);
}

// Where the i-th rank's data lie among those of the others.
int64_t AmongOthers(int64_t i, int64_t here) { return i < here ? i : i - 1; }

// What the collectives of one axis have in common.
class AxisExchange {
 public:
  AxisExchange(int axis, const MeshPlace& place, Backend& backend, Communicator& communicator,
               const char* name)
      : here_(place.coordinate(axis)),
        group_(communicator, place.mesh.PeersOf(place.device, axis), name),
        device_(backend.device()),
        threads_(backend.threads()) {}

  int64_t ranks() const { return group_.size(); }
  int64_t here() const { return here_; }
  RankGroup& group() { return group_; }

  // Calls f(i) for the others, in order.
  template <typename F>
  void ForOthers(const F& f) const {
    for (int64_t i = 0; i < ranks(); ++i) {
      if (i != here_) f(i);
    }
  }

  // y = the parts of all, reduced in the order of the axis.  own: this rank's part, which may be y;
  // others: those of the others, side by side, each of `stride` bytes.
  void Reduce(DType dtype, How how, int64_t count, const std::byte* own, const std::byte* others,
              int64_t stride, std::byte* y) const {
    const int64_t size = BytesPerElement(dtype);
    device_.ForEachPart(threads_, [&](int part) {
      const ElementRange mine = ReducedBy(part, threads_, count);
      for (int64_t begin = mine.begin; begin < mine.end; begin += kTile) {
        const int64_t tile = std::min(kTile, mine.end - begin), offset = begin * size;
        ReduceTile(dtype, how, tile, own + offset, others + offset, stride, y + offset);
      }
    });
  }

 private:
  static constexpr int64_t kTile = 1024;

  void ReduceTile(DType dtype, How how, int64_t count, const std::byte* own,
                  const std::byte* others, int64_t stride, std::byte* y) const {
    alignas(64) std::byte sum[kTile * sizeof(double)];
    const auto bytes = static_cast<size_t>(count * BytesPerElement(dtype));
    for (int64_t i = 0; i < ranks(); ++i) {
      const std::byte* part = i == here_ ? own : others + AmongOthers(i, here_) * stride;
      if (i == 0) {
        std::memcpy(sum, part, bytes);
      } else {
        ReduceInto(dtype, how, part, sum, count);
      }
    }
    std::memcpy(y, sum, bytes);
  }

  const int64_t here_;
  RankGroup group_;
  Device& device_;
  const int threads_;
};

// Each rank reduces its share of the elements for all, and sends it to all.
class AllReduce : public HostKernel<AllReduce> {
 public:
  AllReduce(const OpCall& call, AxisExchange axis)
      : axis_(std::move(axis)), type_(call.inputs[0]), how_(HowOf(call)) {}

  Status Run(const KernelBuffers& buffers) {
    const auto* x = static_cast<const std::byte*>(buffers.inputs[0]);
    auto* y = static_cast<std::byte*>(buffers.outputs[0]);
    auto* others = static_cast<std::byte*>(buffers.workspace);
    const ElementRange own = ReducedBy(axis_.here(), axis_.ranks(), type_.elements());
    const int64_t own_bytes = own.count() * size_;
    axis_.ForOthers([&](int64_t i) {
      const ElementRange theirs = ReducedBy(i, axis_.ranks(), type_.elements());
      axis_.group().Send(i, x + theirs.begin * size_, theirs.count() * size_);
      axis_.group().Receive(i, others + AmongOthers(i, axis_.here()) * own_bytes, own_bytes);
    });
    RIDGE_RETURN_IF_ERROR(axis_.group().Exchange());
    axis_.Reduce(type_.dtype, how_, own.count(), x + own.begin * size_, others, own_bytes,
                 y + own.begin * size_);
    axis_.ForOthers([&](int64_t i) {
      const ElementRange theirs = ReducedBy(i, axis_.ranks(), type_.elements());
      axis_.group().Send(i, y + own.begin * size_, own_bytes);
      axis_.group().Receive(i, y + theirs.begin * size_, theirs.count() * size_);
    });
    return axis_.group().Exchange();
  }

 private:
  AxisExchange axis_;
  const TensorType type_;
  const How how_;
  const int64_t size_ = BytesPerElement(type_.dtype);
};

class ReduceScatter : public HostKernel<ReduceScatter> {
 public:
  ReduceScatter(const OpCall& call, AxisExchange axis)
      : axis_(std::move(axis)),
        part_(call.outputs[0]),
        parts_(part_, call.integer("dim"), call.integer("blocks"), axis_.ranks()),
        how_(HowOf(call)) {}

  Status Run(const KernelBuffers& buffers) {
    const auto* packed = static_cast<const std::byte*>(buffers.inputs[0]);
    auto* others = static_cast<std::byte*>(buffers.workspace);
    const int64_t bytes = part_.bytes();
    if (!parts_.in_order()) {
      packed = others;
      for (int64_t i = 0; i < axis_.ranks(); ++i, others += bytes)
        CopyOut(parts_, i, static_cast<const std::byte*>(buffers.inputs[0]), others);
    }
    axis_.ForOthers([&](int64_t i) {
      axis_.group().Send(i, packed + i * bytes, bytes);
      axis_.group().Receive(i, others + AmongOthers(i, axis_.here()) * bytes, bytes);
    });
    RIDGE_RETURN_IF_ERROR(axis_.group().Exchange());
    axis_.Reduce(part_.dtype, how_, part_.elements(), packed + axis_.here() * bytes, others, bytes,
                 static_cast<std::byte*>(buffers.outputs[0]));
    return Status();
  }

 private:
  AxisExchange axis_;
  const TensorType part_;
  const PartsOfDim parts_;
  const How how_;
};

class AllGather : public HostKernel<AllGather> {
 public:
  AllGather(const OpCall& call, AxisExchange axis)
      : axis_(std::move(axis)),
        parts_(call.inputs[0], call.integer("dim"), call.integer("blocks"), axis_.ranks()) {}

  Status Run(const KernelBuffers& buffers) {
    const auto* x = static_cast<const std::byte*>(buffers.inputs[0]);
    auto* y = static_cast<std::byte*>(buffers.outputs[0]);
    const int64_t bytes = parts_.part_bytes();
    std::byte* received = parts_.in_order() ? y : static_cast<std::byte*>(buffers.workspace);
    axis_.ForOthers([&](int64_t i) {
      axis_.group().Send(i, x, bytes);
      axis_.group().Receive(i, received + i * bytes, bytes);
    });
    RIDGE_RETURN_IF_ERROR(axis_.group().Exchange());
    CopyIn(parts_, axis_.here(), x, y);
    if (!parts_.in_order())
      axis_.ForOthers([&](int64_t i) { CopyIn(parts_, i, received + i * bytes, y); });
    return Status();
  }

 private:
  AxisExchange axis_;
  const PartsOfDim parts_;
};

// A rank sends each other its part of `dim`, and has then all of `from_dim`.
class AllToAll : public HostKernel<AllToAll> {
 public:
  AllToAll(const OpCall& call, AxisExchange axis)
      : axis_(std::move(axis)),
        out_(PieceOf(call), call.integer("dim"), call.integer("blocks"), axis_.ranks()),
        in_(PieceOf(call), call.integer("from_dim"), call.integer("from_blocks"), axis_.ranks()) {}

  Status Run(const KernelBuffers& buffers) {
    const auto* x = static_cast<const std::byte*>(buffers.inputs[0]);
    auto* y = static_cast<std::byte*>(buffers.outputs[0]);
    const int64_t bytes = out_.part_bytes();
    auto* packed = static_cast<std::byte*>(buffers.workspace);
    std::byte* received = packed + axis_.ranks() * bytes;
    for (int64_t i = 0; i < axis_.ranks(); ++i) CopyOut(out_, i, x, packed + i * bytes);
    axis_.ForOthers([&](int64_t i) {
      axis_.group().Send(i, packed + i * bytes, bytes);
      axis_.group().Receive(i, received + i * bytes, bytes);
    });
    RIDGE_RETURN_IF_ERROR(axis_.group().Exchange());
    CopyIn(in_, axis_.here(), packed + axis_.here() * bytes, y);
    axis_.ForOthers([&](int64_t i) { CopyIn(in_, i, received + i * bytes, y); });
    return Status();
  }

 private:
  // What one rank sends another.
  static TensorType PieceOf(const OpCall& call) {
    TensorType piece = call.inputs[0];
    piece.dims[static_cast<size_t>(call.integer("dim"))] /= call.integer("ranks");
    return piece;
  }

  AxisExchange axis_;
  const PartsOfDim out_, in_;
};

class LocalPart : public HostKernel<LocalPart> {
 public:
  LocalPart(const OpCall& call, int64_t here)
      : here_(here),
        parts_(call.outputs[0], call.integer("dim"), call.integer("blocks"),
               call.integer("ranks")) {}

  Status Run(const KernelBuffers& buffers) {
    CopyOut(parts_, here_, static_cast<const std::byte*>(buffers.inputs[0]),
            static_cast<std::byte*>(buffers.outputs[0]));
    return Status();
  }

 private:
  const int64_t here_;
  const PartsOfDim parts_;
};

std::unique_ptr<Kernel> MakeCollective(const PlannedNode& node, AxisExchange axis) {
  if (node.def == &AllReduceOp()) return std::make_unique<AllReduce>(node.call, std::move(axis));
  if (node.def == &ReduceScatterOp())
    return std::make_unique<ReduceScatter>(node.call, std::move(axis));
  if (node.def == &AllGatherOp()) return std::make_unique<AllGather>(node.call, std::move(axis));
  return std::make_unique<AllToAll>(node.call, std::move(axis));
}

}  // namespace

std::unique_ptr<Kernel> MakeMeshKernel(const PlannedNode& node, const std::string& step,
                                       const MeshPlace& place, Backend& backend,
                                       Communicator* communicator, double& spent_s) {
  const std::string& name = node.call.text("axis");
  const int axis = place.mesh.Find(name);
  if (!IsMeshCollective(node))
    return std::make_unique<LocalPart>(node.call, place.coordinate(axis));
  if (communicator == nullptr) return MakeNobodyElse(place.mesh.devices());
  const char* told = KeptName(fmt::format("{} over {} '{}'", node.def->name, name, step));
  return Timed(MakeCollective(node, AxisExchange(axis, place, backend, *communicator, told)),
               backend, spent_s);
}

}  // namespace ridge
