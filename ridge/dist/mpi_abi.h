/* The functions of an MPI that a plug-in gives to the program, as C.
 *
 * Open MPI and MPICH agree on names, not on types: a communicator is a pointer in one and a number
 * in the other.  So the program finds a plug-in when it runs (mpi_plugin.h) and knows no mpi.h; the
 * plug-in (plugins/mpi) is one file, compiled once for each mpi.h.  A change of anything here is
 * another RIDGE_MPI_ABI.  One thread at a time calls them. */
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RIDGE_MPI_ABI 2

struct RidgeMpiApi {
  int32_t abi;
  int32_t request_bytes;      /* of a request; aligned as a pointer is */
  const char* implementation; /* of its mpi.h: "openmpi", "mpich" */

  /* Once in a process.  `serialized`: whether several threads may call, one at a time.
   * All but `abort` and the texts return 0, or an error for `text_of`. */
  int32_t (*join)(int32_t* rank, int32_t* size, int32_t* serialized);
  int32_t (*leave)(void);           /* waits for the other ranks */
  void (*abort)(int32_t exit_code); /* ends all ranks */

  /* Start request `index` of the caller's array.  Messages of one tag (below 32768) between two
   * ranks arrive in the order in which they were sent. */
  int32_t (*send)(const void* bytes, int32_t count, int32_t to, int32_t tag, void* requests,
                  int32_t index);
  int32_t (*receive)(void* bytes, int32_t count, int32_t from, int32_t tag, void* requests,
                     int32_t index);
  /* `done` is a request that has ended since the last call, -1 when none has; `received` is the
   * number of its bytes if it was a receive. */
  int32_t (*test)(void* requests, int32_t count, int32_t* done, int32_t* received);

  void (*library)(char* text, int64_t bytes); /* the version that runs, as it says it itself */
  void (*text_of)(int32_t error, char* text, int64_t bytes);
};

/* The one symbol of the plug-in: "ridge_mpi_api". */
typedef const struct RidgeMpiApi* (*RidgeMpiEntry)(void);

#ifdef __cplusplus
}
#endif
