// What a program made of kernels' texts and the host's threads tell each other.  Plain C.
#pragma once

struct RidgeIndex {
  unsigned x, y, z;
};

// The block and the thread that run now.
struct RidgeHostBlock {
  RidgeIndex thread_index, block_index, block_extent, grid_extent;
  void (*synchronize)();
  // `word` of lane `lane` of this warp, when all lanes of `mask` have come.
  unsigned long long (*exchange)(unsigned mask, unsigned long long word, int lane);
};

// A kernel of a program.  A table of them, which ends with a null name, is `ridge_kernels`.
struct RidgeHostKernel {
  const char* name;
  void (*call)(void* const* arguments);
  int parameters;
  bool barriers;              // its threads wait for each other
  char *shared, *shared_end;  // the text's shared memory
};
