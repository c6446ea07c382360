// conv and its gradients in f64: columns of the taps of a run of outputs (im2col), then a product.
//
// A 1x1 convolution needs no columns: x is them.  Threads share (image, group, run of outputs)
// forward; (image, group, channels) for dx, whose columns are added back into the image; and
// (group, outputs, channels) for dw, which sums over the images in order.
#include <algorithm>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/gemm_f64.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/core/rounding.h"
#include "ridge/graph/ops/shared/conv.h"

namespace ridge::cpu {
namespace {

constexpr int64_t kColumnBytes = int64_t{2}
                                 << 20;  // of one block of columns, in a second-level cache

struct ConvF64 {
  explicit ConvF64(const ConvGeometry& geometry) : g(geometry), taps(g.window.taps()) {
    pixels = g.window.inputs();
    points = g.window.outputs();
    direct = taps == 1;
    for (const WindowAxis& axis : g.window.axes)
      direct = direct && axis.stride == 1 && axis.pad_begin == 0 && axis.pad_end == 0;
    const int64_t fitting = kColumnBytes / 8 / std::max<int64_t>(g.group_inputs * taps, 1);
    run = std::min(points, std::clamp<int64_t>(fitting / 16 * 16, 128, 4096));
    runs = CeilDiv(points, run);
  }

  // Doubles that a thread needs for the columns of `channels` channels.
  int64_t column_doubles(int64_t channels) const { return direct ? 0 : channels * taps * run; }

  ConvGeometry g;
  int64_t taps, pixels, points;
  int64_t run, runs;  // outputs of a block of columns; blocks of a plane
  bool direct;
};

// Where the block [begin, end) of outputs of a plane crosses row r of outputs: the part of the row.
struct RowPart {
  int64_t z, y, first, last;  // outputs [first, last) of row (z, y)
  int64_t at;                 // of `first` in the block
};

template <typename F>
void ForEachRowPart(const SlidingWindow& window, int64_t begin, int64_t end, const F& f) {
  const int64_t width = window.x().output, height = window.y().output;
  for (int64_t p = begin; p < end;) {
    const int64_t row = p / width, last = std::min(end, (row + 1) * width);
    f(RowPart{row / height, row % height, p - row * width, last - row * width, p - begin});
    p = last;
  }
}

// Row `tap` of the columns of one plane: visit(first output, last output, where in the block, first
// input, input step), for the outputs of the block whose tap is inside.
template <typename F>
void ForEachInside(const SlidingWindow& window, int64_t tap, int64_t begin, int64_t end,
                   const F& visit) {
  const WindowAxis &wz = window.z(), &wy = window.y(), &wx = window.x();
  const int64_t kx = tap % wx.kernel, ky = tap / wx.kernel % wy.kernel,
                kz = tap / (wx.kernel * wy.kernel);
  const OutputRange columns = wx.OutputsOfTap(kx);
  ForEachRowPart(window, begin, end, [&](const RowPart& part) {
    const int64_t z = wz.InputAt(part.z, kz), y = wy.InputAt(part.y, ky);
    if (!wz.Inside(z) || !wy.Inside(y)) return;
    const int64_t first = std::max(part.first, columns.first),
                  last = std::min(part.last, columns.last);
    if (first >= last) return;
    visit(part.at + first - part.first, last - first,
          window.InputIndex(z, y, wx.InputAt(first, kx)));
  });
}

// columns [channels * taps, end - begin] of `channels` planes of x.
void MakeColumns(const ConvF64& c, const double* x, int64_t channels, int64_t begin, int64_t end,
                 double* columns) {
  const int64_t width = end - begin, step = c.g.window.x().stride;
  for (int64_t row = 0; row < channels * c.taps; ++row) {
    double* to = columns + row * width;
    const double* plane = x + row / c.taps * c.pixels;
    std::fill_n(to, width, 0.0);
    ForEachInside(c.g.window, row % c.taps, begin, end,
                  [&](int64_t at, int64_t count, int64_t from) {
                    if (step == 1) {
                      std::copy_n(plane + from, count, to + at);
                    } else {
                      for (int64_t i = 0; i < count; ++i) to[at + i] = plane[from + i * step];
                    }
                  });
  }
}

// The transpose: dx += columns.
void AddColumns(const ConvF64& c, const double* columns, int64_t channels, int64_t begin,
                int64_t end, double* dx) {
  const int64_t width = end - begin, step = c.g.window.x().stride;
  for (int64_t row = 0; row < channels * c.taps; ++row) {
    const double* from = columns + row * width;
    double* plane = dx + row / c.taps * c.pixels;
    ForEachInside(c.g.window, row % c.taps, begin, end, [&](int64_t at, int64_t count, int64_t to) {
      for (int64_t i = 0; i < count; ++i) plane[to + i * step] += from[at + i];
    });
  }
}

// Scratch of one thread: of the product, then columns.
struct Scratch {
  double *gemm, *columns;
};

class ConvF64Kernel : public HostKernel<ConvF64Kernel> {
 public:
  ConvF64Kernel(const ConvGeometry& g, int64_t thread_doubles, int threads)
      : c_(g), thread_doubles_(thread_doubles), threads_(threads) {}
  virtual Status Run(const KernelBuffers& b) = 0;

 protected:
  // Calls f(task, scratch) for each task; the thread that does it does not matter.
  template <typename F>
  void ForEachTask(const KernelBuffers& b, int64_t tasks, const F& f) const {
    ForEachPart(threads_, [&](int part) {
      double* own = static_cast<double*>(b.workspace) + part * thread_doubles_;
      const Range range = PartOf(tasks, threads_, part);
      for (int64_t task = range.begin; task < range.end; ++task)
        f(task, Scratch{own, own + kGemmScratch});
    });
  }

  // The columns of `channels` planes at x: made, or x itself.
  MatrixF64 ColumnsOf(const double* x, int64_t channels, int64_t begin, int64_t end,
                      const Scratch& scratch) const {
    if (c_.direct) return {x + begin, c_.pixels, 1};
    MakeColumns(c_, x, channels, begin, end, scratch.columns);
    return {scratch.columns, end - begin, 1};
  }

  const ConvF64 c_;
  const int64_t thread_doubles_;
  const int threads_;
};

class ForwardF64 : public ConvF64Kernel {
 public:
  ForwardF64(const OpCall& call, int64_t thread_doubles, int threads)
      : ConvF64Kernel(ConvGeometryOf(call), thread_doubles, threads),
        has_bias_(call.has_input(2)),
        epilogue_(call, /*first_extra_input=*/3) {}

  Status Run(const KernelBuffers& b) override {
    ForEachTask(b, c_.g.batch * c_.g.groups * c_.runs, [&](int64_t task, const Scratch& scratch) {
      RunBlock(b, task / c_.runs, task % c_.runs * c_.run, scratch);
    });
    return Status();
  }

 private:
  // `slot` counts (image, group).
  void RunBlock(const KernelBuffers& b, int64_t slot, int64_t begin, const Scratch& scratch) const {
    const int64_t end = std::min(c_.points, begin + c_.run), group = slot % c_.g.groups;
    const int64_t k = c_.g.group_inputs * c_.taps, m = c_.g.group_outputs;
    const double* x =
        static_cast<const double*>(b.inputs[0]) + slot * c_.g.group_inputs * c_.pixels;
    const double* w = static_cast<const double*>(b.inputs[1]) + group * m * k;
    auto* y = static_cast<double*>(b.outputs[0]);
    const int64_t first = slot * m * c_.points + begin;
    for (int64_t o = 0; o < m; ++o) {
      const double bias = has_bias_ ? static_cast<const double*>(b.inputs[2])[group * m + o] : 0.0;
      std::fill_n(y + first + o * c_.points, end - begin, bias);
    }
    RunGemm({.m = m,
             .n = end - begin,
             .k = k,
             .a = {w, k, 1},
             .b = ColumnsOf(x, c_.g.group_inputs, begin, end, scratch),
             .c = y + first,
             .c_row = c_.points,
             .add = true},
            scratch.gemm);
    for (int64_t o = 0; o < m && !epilogue_.empty(); ++o) {
      const int64_t row = first + o * c_.points;
      epilogue_.Apply(b.inputs.data(), row, row + end - begin, y);
    }
  }

  const bool has_bias_;
  const EpilogueF64 epilogue_;
};

class GradInputF64 : public ConvF64Kernel {
 public:
  GradInputF64(const OpCall& call, int64_t thread_doubles, int threads)
      : ConvF64Kernel(GradInputGeometryOf(call), thread_doubles, threads),
        chunks_(Chunks(c_.g, threads)) {}

  // Pieces that the channels of a group are cut into, so that there is work for all threads.
  static int64_t Chunks(const ConvGeometry& g, int threads) {
    const int64_t slots = std::max<int64_t>(1, g.batch * g.groups);
    return std::clamp<int64_t>(CeilDiv(threads, slots), 1, std::max<int64_t>(1, g.group_inputs));
  }

  Status Run(const KernelBuffers& b) override {
    ForEachTask(b, c_.g.batch * c_.g.groups * chunks_, [&](int64_t task, const Scratch& scratch) {
      const Range channels =
          PartOf(c_.g.group_inputs, static_cast<int>(chunks_), static_cast<int>(task % chunks_));
      RunChannels(b, task / chunks_, channels, scratch);
    });
    return Status();
  }

 private:
  void RunChannels(const KernelBuffers& b, int64_t slot, Range channels,
                   const Scratch& scratch) const {
    const int64_t count = channels.end - channels.begin, m = c_.g.group_outputs;
    const int64_t k = c_.g.group_inputs * c_.taps;
    const double* dy = static_cast<const double*>(b.inputs[0]) + slot * m * c_.points;
    const double* w = static_cast<const double*>(b.inputs[1]) + slot % c_.g.groups * m * k +
                      channels.begin * c_.taps;
    double* dx = static_cast<double*>(b.outputs[0]) +
                 (slot * c_.g.group_inputs + channels.begin) * c_.pixels;
    if (!c_.direct) std::fill_n(dx, count * c_.pixels, 0.0);
    for (int64_t begin = 0; begin < c_.points; begin += c_.run) {
      const int64_t end = std::min(c_.points, begin + c_.run);
      // columns = w^T dy
      RunGemm({.m = count * c_.taps,
               .n = end - begin,
               .k = m,
               .a = {w, 1, k},
               .b = {dy + begin, c_.points, 1},
               .c = c_.direct ? dx + begin : scratch.columns,
               .c_row = c_.direct ? c_.pixels : end - begin},
              scratch.gemm);
      if (!c_.direct) AddColumns(c_, scratch.columns, count, begin, end, dx);
    }
  }

  const int64_t chunks_;
};

class GradWeightF64 : public ConvF64Kernel {
 public:
  GradWeightF64(const OpCall& call, int64_t thread_doubles, int threads)
      : ConvF64Kernel(GradWeightGeometryOf(call), thread_doubles, threads),
        has_bias_(call.integer("bias") != 0) {
    const auto pieces = [&](int64_t wanted, int64_t most) {
      return std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, most));
    };
    channel_chunks_ = pieces(CeilDiv(threads, c_.g.groups), c_.g.group_inputs);
    const int64_t tasks = c_.g.groups * channel_chunks_;
    output_chunks_ = pieces(CeilDiv(threads, tasks), c_.g.group_outputs);
  }

  Status Run(const KernelBuffers& b) override {
    const int64_t chunks = channel_chunks_ * output_chunks_;
    ForEachTask(b, c_.g.groups * chunks, [&](int64_t task, const Scratch& scratch) {
      const auto output = static_cast<int>(task % chunks / channel_chunks_),
                 channel = static_cast<int>(task % channel_chunks_);
      RunPart(b, task / chunks,
              PartOf(c_.g.group_outputs, static_cast<int>(output_chunks_), output),
              PartOf(c_.g.group_inputs, static_cast<int>(channel_chunks_), channel), scratch);
    });
    if (has_bias_)
      SumBias(static_cast<const double*>(b.inputs[1]), static_cast<double*>(b.outputs[1]));
    return Status();
  }

 private:
  // dw[outputs, channels] = sum over images and blocks of dy columns^T.
  void RunPart(const KernelBuffers& b, int64_t group, Range outputs, Range channels,
               const Scratch& scratch) const {
    const int64_t m = c_.g.group_outputs, k = c_.g.group_inputs * c_.taps;
    const int64_t count = channels.end - channels.begin;
    double* dw = static_cast<double*>(b.outputs[0]) + (group * m + outputs.begin) * k +
                 channels.begin * c_.taps;
    for (int64_t block = 0; block < c_.g.batch * c_.runs; ++block) {
      const int64_t slot = block / c_.runs * c_.g.groups + group, begin = block % c_.runs * c_.run;
      const int64_t end = std::min(c_.points, begin + c_.run);
      const double* x = static_cast<const double*>(b.inputs[0]) +
                        (slot * c_.g.group_inputs + channels.begin) * c_.pixels;
      const double* dy =
          static_cast<const double*>(b.inputs[1]) + (slot * m + outputs.begin) * c_.points + begin;
      const MatrixF64 columns = ColumnsOf(x, count, begin, end, scratch);
      RunGemm({.m = outputs.end - outputs.begin,
               .n = count * c_.taps,
               .k = end - begin,
               .a = {dy, c_.points, 1},
               .b = {columns.data, columns.col, columns.row},
               .c = dw,
               .c_row = k,
               .add = block > 0},
              scratch.gemm);
    }
  }

  void SumBias(const double* dy, double* dbias) const {
    ParallelFor(threads_, c_.g.outputs(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        double sum = 0;
        for (int64_t image = 0; image < c_.g.batch; ++image) {
          const double* plane = dy + (image * c_.g.outputs() + o) * c_.points;
          for (int64_t i = 0; i < c_.points; ++i) sum += plane[i];
        }
        dbias[o] = sum;
      }
    });
  }

  const bool has_bias_;
  int64_t channel_chunks_ = 1, output_chunks_ = 1;
};

ConvGeometry GeometryOf(const OpDef& op, const OpCall& call) {
  if (op.name == "conv") return ConvGeometryOf(call);
  return op.name == "conv_grad_input" ? GradInputGeometryOf(call) : GradWeightGeometryOf(call);
}

// A chunk of channels has up to all of a group.
int64_t ThreadDoubles(const ConvGeometry& g) {
  return kGemmScratch + ConvF64(g).column_doubles(g.group_inputs);
}

int64_t WorkspaceBytes(const CandidateQuery& q) {
  return q.threads() * ThreadDoubles(GeometryOf(q.op, q.call)) * 8;
}

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice&) {
  const int threads = q.threads();
  const int64_t doubles = ThreadDoubles(GeometryOf(q.op, q.call));
  std::unique_ptr<Kernel> kernel;
  if (q.op.name == "conv") {
    kernel = std::make_unique<ForwardF64>(q.call, doubles, threads);
  } else if (q.op.name == "conv_grad_input") {
    kernel = std::make_unique<GradInputF64>(q.call, doubles, threads);
  } else {
    kernel = std::make_unique<GradWeightF64>(q.call, doubles, threads);
  }
  return kernel;
}

}  // namespace

KernelDef ConvF64KernelDef() {
  return {.name = "cpu.{op}_f64",
          .ops = {"conv", "conv_grad_input", "conv_grad_weight"},
          .dtypes = {DType::kF64},
          .in_place = false,
          .workspace_bytes = WorkspaceBytes,
          .make = Make};
}

}  // namespace ridge::cpu
