/* An MPI's functions for ridge/dist/mpi_abi.h.
 *
 * C, not C++: Open MPI's header brings its old C++ classes in. */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include <mpi.h>
#include <net/if.h>
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

#if defined(OPEN_MPI)
/* Long messages are divided among a pair's connections by what this says of their rates. */
static void KeepFree(const char* link, int connection) {
  char name[96];
  snprintf(name, sizeof(name), "OMPI_MCA_btl_tcp_bandwidth_%s:%d", link, connection);
  setenv(name, "1", /*replace=*/0); /* Mbit/s */
}
#endif

/* Over TCP Open MPI puts short messages, and the permission to send a long one, behind the bytes of
 * its own long message, if they share a connection: two ranks that exchange then send in turn, at
 * half the rate, and a short message waits for the long ones before it.  So a pair has two
 * connections.  Short messages take the first one anyway; it is kept free of long ones.  Who names
 * a number of connections has Open MPI's way with them. */
static void ChooseConnections(void) {
#if defined(OPEN_MPI)
  if (getenv("OMPI_MCA_btl_tcp_links") != NULL) return;
  setenv("OMPI_MCA_btl_tcp_links", "2", /*replace=*/0);
  struct if_nameindex* links = if_nameindex();
  for (const struct if_nameindex* one = links; one != NULL && one->if_index != 0; ++one)
    KeepFree(one->if_name, 0);
  if (links != NULL) if_freenameindex(links);
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
