/* An MPI's functions for ridge/dist/mpi_abi.h.
 *
 * C, not C++: Open MPI's header brings its old C++ classes in. */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "ridge/dist/mpi_abi.h"

#if defined(OPEN_MPI)
#define IMPLEMENTATION "openmpi"
#elif defined(MPICH_VERSION) /* and what shares its types: Intel MPI, MVAPICH, Cray MPICH */
#define IMPLEMENTATION "mpich"
#else
#error "mpi.h is neither Open MPI's nor MPICH's"
#endif

/* Over TCP Open MPI puts the permission to send a long message behind the bytes of its own one, if
 * both share a connection: two ranks that exchange then send in turn, at half the rate.  With two
 * connections a pair both send at once. */
static void ChooseConnections(void) {
#if defined(OPEN_MPI)
  setenv("OMPI_MCA_btl_tcp_links", "2", /*replace=*/0);
#endif
}

static int32_t Join(int32_t* rank, int32_t* size, int32_t* serialized) {
  ChooseConnections();
  int level = 0, error = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
  *serialized = level >= MPI_THREAD_SERIALIZED;
  if (error == MPI_SUCCESS) error = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (error == MPI_SUCCESS) error = MPI_Comm_rank(MPI_COMM_WORLD, rank);
  if (error == MPI_SUCCESS) error = MPI_Comm_size(MPI_COMM_WORLD, size);
  return error;
}

static int32_t Leave(void) { return MPI_Finalize(); }

static void Abort(int32_t exit_code) { MPI_Abort(MPI_COMM_WORLD, exit_code); }

static int32_t Send(const void* bytes, int32_t count, int32_t to, int32_t tag, void* requests,
                    int32_t index) {
  return MPI_Isend(bytes, count, MPI_BYTE, to, tag, MPI_COMM_WORLD,
                   (MPI_Request*)requests + index);
}

static int32_t Receive(void* bytes, int32_t count, int32_t from, int32_t tag, void* requests,
                       int32_t index) {
  return MPI_Irecv(bytes, count, MPI_BYTE, from, tag, MPI_COMM_WORLD,
                   (MPI_Request*)requests + index);
}

static int32_t Test(void* requests, int32_t count, int32_t* done, int32_t* received) {
  int index = MPI_UNDEFINED, flag = 0;
  MPI_Status status;
  int error = MPI_Testany(count, (MPI_Request*)requests, &index, &flag, &status);
  *done = -1;
  *received = 0;
  if (error != MPI_SUCCESS || !flag || index == MPI_UNDEFINED) return error;
  *done = index;
  return MPI_Get_count(&status, MPI_BYTE, received);
}

static void Copy(const char* from, char* text, int64_t bytes) {
  snprintf(text, (size_t)bytes, "%s", from);
}

static void Library(char* text, int64_t bytes) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(version, &length);
  Copy(version, text, bytes);
}

static void TextOf(int32_t error, char* text, int64_t bytes) {
  char reason[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(error, reason, &length);
  Copy(reason, text, bytes);
}

static const struct RidgeMpiApi api = {
    .abi = RIDGE_MPI_ABI,
    .request_bytes = (int32_t)sizeof(MPI_Request),
    .implementation = IMPLEMENTATION,
    .join = Join,
    .leave = Leave,
    .abort = Abort,
    .send = Send,
    .receive = Receive,
    .test = Test,
    .library = Library,
    .text_of = TextOf,
};

__attribute__((visibility("default"))) const struct RidgeMpiApi* ridge_mpi_api(void) {
  return &api;
}
