// assign_boxes: the pictures of a batch are shared among threads; each does all of one.
#include "ridge/backend/cpu/kernels/for_dtype.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/graph/ops/shared/box_assignment.h"

namespace ridge::cpu {
namespace {

template <typename T>
class AssignBoxesKernel : public HostKernel<AssignBoxesKernel<T>> {
 public:
  AssignBoxesKernel(const OpCall& call, int threads)
      : sizes_(call), batch_(call.inputs[0].dims[0]), threads_(threads) {}

  Status Run(const KernelBuffers& b) {
    const auto numbers = static_cast<size_t>(sizes_.workspace_numbers());
    ForEachPart(threads_, [&](int part) {
      double* mine = static_cast<double*>(b.workspace) + static_cast<size_t>(part) * numbers;
      BoxAssigner<T, int64_t> assigner(sizes_, static_cast<const T*>(b.inputs[2]), {mine, numbers});
      const Range range = PartOf(batch_, threads_, part);
      for (int64_t picture = range.begin; picture < range.end; ++picture)
        RunPicture(b, picture, assigner);
    });
    return Status();
  }

 private:
  void RunPicture(const KernelBuffers& b, int64_t picture,
                  BoxAssigner<T, int64_t>& assigner) const {
    const int64_t boxes = picture * sizes_.places * 4;
    const int64_t scores = picture * sizes_.places * sizes_.classes;
    const int64_t truths = picture * sizes_.truths;
    assigner.Run(static_cast<const T*>(b.inputs[0]) + scores,
                 static_cast<const T*>(b.inputs[1]) + boxes,
                 static_cast<const T*>(b.inputs[3]) + truths * 4,
                 static_cast<const int64_t*>(b.inputs[4]) + truths,
                 static_cast<T*>(b.outputs[0]) + boxes, static_cast<T*>(b.outputs[1]) + scores);
  }

  const AssignmentSizes sizes_;
  const int64_t batch_;
  const int threads_;
};

int64_t WorkspaceBytes(const CandidateQuery& q) {
  constexpr int64_t kNumberBytes = 8;
  return q.threads() * AssignmentSizes(q.call).workspace_numbers() * kNumberBytes;
}

}  // namespace

KernelDef AssignBoxesKernelDef() {
  return {.name = "cpu.assign_boxes",
          .ops = {"assign_boxes"},
          .takes_empty = true,
          .dtypes = Reals::dtypes(),
          .workspace_bytes = WorkspaceBytes,
          .make = MakeOfElement<AssignBoxesKernel, Reals>};
}

}  // namespace ridge::cpu
