/* The functions that the plug-in for Parquet files gives to the program, as C.
 *
 * The program finds the plug-in when it runs (parquet_plugin.h) and knows nothing of Arrow; the
 * plug-in (plugins/parquet) knows nothing of the program.  A change of anything here is another
 * RIDGE_PARQUET_ABI.  Nothing throws.  A file is used by one thread at a time. */
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RIDGE_PARQUET_ABI 1

enum RidgeParquetKind {
  RIDGE_PARQUET_OTHER = 0, /* cannot be read */
  RIDGE_PARQUET_INTEGERS = 1,
  RIDGE_PARQUET_FLOATS = 2,
  RIDGE_PARQUET_BOOLEANS = 3, /* integers 0 and 1 */
  RIDGE_PARQUET_TEXTS = 4,
  RIDGE_PARQUET_BYTES = 5, /* also the field `bytes` of a struct */
  RIDGE_PARQUET_INTEGER_LISTS = 6,
  RIDGE_PARQUET_FLOAT_LISTS = 7
};

/* Texts belong to the file. */
struct RidgeParquetColumn {
  const char* name;
  const char* type; /* as Arrow writes it, for messages: "timestamp[ms]" */
  int32_t kind;
};

/* A column in one row group.  Belongs to the file, until the next call of `load` or `close`. */
struct RidgeParquetChunk {
  int64_t rows;
  const uint8_t* valid;    /* one a row: 0 where it is null */
  const int64_t* integers; /* one a row, of lists one an element; 0 where it is null */
  const double* floats;    /* the same; NaN where it is null */
  const int64_t* offsets;  /* rows + 1, into bytes or elements */
  const char* bytes;       /* of texts (UTF-8) and bytes */
};

struct RidgeParquetApi {
  int32_t abi;
  const char* library; /* "Arrow 26.0.1" */

  /* Null on failure; `error` then has the reason.  The library allocates at most `most_bytes`. */
  void* (*open)(const char* path, int64_t most_bytes, char* error, int64_t error_bytes);
  void (*close)(void* file);

  int32_t (*columns)(void* file);
  struct RidgeParquetColumn (*column)(void* file, int32_t column);
  int32_t (*row_groups)(void* file);
  int64_t (*rows)(void* file, int32_t row_group);

  /* These return 0, or 1 and a reason. */
  int32_t (*load)(void* file, int32_t row_group, char* error, int64_t error_bytes);
  int32_t (*chunk)(void* file, int32_t column, struct RidgeParquetChunk* chunk, char* error,
                   int64_t error_bytes);
};

/* The one symbol of the plug-in: "ridge_parquet_api". */
typedef const struct RidgeParquetApi* (*RidgeParquetEntry)(void);

#ifdef __cplusplus
}
#endif
