/* The functions that the plug-in for cuDNN gives to the program, as C.
 *
 * The program finds the plug-in when it runs (cudnn_plugin.h) and needs no header of NVIDIA's; the
 * plug-in (plugins/cudnn/ridge_cudnn.cc) knows nothing of the program.  A change of anything here
 * is another RIDGE_CUDNN_ABI.  Nothing throws.  A session and its plans are used by one thread at a
 * time. */
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RIDGE_CUDNN_ABI 2

enum RidgeCudnnOp {
  RIDGE_CUDNN_ATTENTION = 0,
  RIDGE_CUDNN_ATTENTION_GRAD = 1,
  RIDGE_CUDNN_CONV = 2,
  RIDGE_CUDNN_CONV_GRAD_INPUT = 3,
  RIDGE_CUDNN_CONV_GRAD_WEIGHT = 4
};

enum RidgeCudnnType { RIDGE_CUDNN_F32 = 0, RIDGE_CUDNN_F16 = 1, RIDGE_CUDNN_BF16 = 2 };

enum { RIDGE_CUDNN_MOST_DIMS = 5, RIDGE_CUDNN_MOST_AXES = 3 };

/* Which tensor is what.  Of attention: q [B,H,T,D], k [B,Hkv,S,D], v [B,Hkv,S,Dv], y [B,H,T,Dv],
 * the logarithm of each row's sum of exponentials [B,H,T,1], and gradients.
 * Of a convolution: x [B,C,...], w [O,C/groups,...], y [B,O,...], bias [1,O,1,...]; gradients stand
 * in the place of what they belong to. */
enum RidgeCudnnSlot {
  RIDGE_CUDNN_Q = 0,
  RIDGE_CUDNN_K = 1,
  RIDGE_CUDNN_V = 2,
  RIDGE_CUDNN_O = 3,
  RIDGE_CUDNN_LOG_SUM = 4,
  RIDGE_CUDNN_DO = 5,
  RIDGE_CUDNN_DQ = 6,
  RIDGE_CUDNN_DK = 7,
  RIDGE_CUDNN_DV = 8,
  RIDGE_CUDNN_X = 0,
  RIDGE_CUDNN_W = 1,
  RIDGE_CUDNN_Y = 2,
  RIDGE_CUDNN_BIAS = 3,
  RIDGE_CUDNN_SLOTS = 9
};

struct RidgeCudnnTensor {
  int32_t rank;      /* 0: absent */
  int32_t type;      /* RidgeCudnnType */
  int32_t alignment; /* of its address in bytes: a power of two */
  int64_t dims[RIDGE_CUDNN_MOST_DIMS];
  int64_t strides[RIDGE_CUDNN_MOST_DIMS]; /* in elements */
};

struct RidgeCudnnQuestion {
  int32_t op;        /* RidgeCudnnOp */
  int32_t same_bits; /* 1: only what has the same bits in each run */
  int32_t tf32;      /* 1: f32 operands may be rounded to it */
  int32_t engine;    /* 0: the first of cuDNN's list that runs the graph; N: the Nth of the list */
  int64_t most_workspace; /* bytes */
  struct RidgeCudnnTensor tensors[RIDGE_CUDNN_SLOTS];
  /* Attention. */
  double scale;
  int32_t causal; /* 1: key j is hidden from query i where j > i; 2: where j > i + S - T */
  /* A convolution. */
  int32_t relu; /* 1: of the sum */
  int32_t axes; /* spatial ones */
  int64_t stride[RIDGE_CUDNN_MOST_AXES], dilation[RIDGE_CUDNN_MOST_AXES];
  int64_t before[RIDGE_CUDNN_MOST_AXES], after[RIDGE_CUDNN_MOST_AXES]; /* padding */
};

struct RidgeCudnnAnswer {
  int32_t engines; /* in cuDNN's list; 0 where it did not come so far */
  int64_t workspace_bytes;
  char name[128]; /* of cuDNN's plan: "eng62_k2=4" */
  char text[512]; /* why there is none */
};

struct RidgeCudnnApi {
  int32_t abi;

  /* `library`: the path of libcudnn.so.9, the same in all calls of a process; `runtime`: of
   * libcudart, or null.  Of the GPU whose context the calling thread has; or, where `device` is not
   * null, of one that is not here and is described by that JSON: its plans do not run.
   * `architecture`: 90 for 9.0.  Null on failure; `error` then has the reason. */
  void* (*open)(const char* library, const char* runtime, const char* device, int32_t architecture,
                char* error, int64_t error_bytes);
  void (*close)(void* session);      /* after its plans */
  int64_t (*version)(void* session); /* of cuDNN: 91400 for 9.14.0 */

  /* A plan, or null and answer->text. */
  void* (*make)(void* session, const struct RidgeCudnnQuestion* question,
                struct RidgeCudnnAnswer* answer);
  void (*drop)(void* plan);
  /* Device addresses by RidgeCudnnSlot.  0, or 1 and a reason. */
  int32_t (*enqueue)(void* plan, void* stream, void* const* tensors, void* workspace, char* error,
                     int64_t error_bytes);
};

/* The one symbol of the plug-in: "ridge_cudnn_api". */
typedef const struct RidgeCudnnApi* (*RidgeCudnnEntry)(void);

#ifdef __cplusplus
}
#endif
