// SPDX-License-Identifier: Apache-2.0
/* The C interface of cyxla: types and the table of functions that a compiled module calls. The file
 * is plain C11, includes neither Python nor the PJRT header, and may be used from C++.
 *
 * The ABI grows in two ways:
 *
 * - Appending keeps CYXLA_ABI_VERSION. New functions go to the end of cyxla_api, new members to the
 *   end of cyxla_program_spec, new values to the enumerations and macros. Only cyxla allocates
 *   these two structs, so a longer one does not disturb a module that knows the shorter one.
 * - Everything else raises CYXLA_ABI_VERSION: a member that moves, goes or changes its type or
 *   meaning, and any change of cyxla_input, which modules allocate.
 *
 * cyxla writes its own sizeof(cyxla_api) and sizeof(cyxla_program_spec) into the table and into
 * each spec. cyxla_import() (cyxla_import.h) compares them with the sizes that the module was
 * compiled with. It refuses another CYXLA_ABI_VERSION, and a cyxla whose structs are shorter than
 * the module's: that cyxla is older and lacks members that the module may use. It accepts a cyxla
 * whose structs are longer. A Cython module calls cyxla.check_abi(ABI_VERSION), which compares the
 * version; Cython itself refuses at import a function that the installed cyxla lacks.
 */
#ifndef CYXLA_CYXLA_H_
#define CYXLA_CYXLA_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CYXLA_ABI_VERSION 2

/* Name of the capsule that holds the cyxla_api table. */
#define CYXLA_CAPSULE_NAME "cyxla._runtime._C_API"

/* Memory at addresses that are multiples of this many bytes is read in place. */
#define CYXLA_ALIGNMENT 64

/* Bit of cyxla_program_spec.flags: the program calls back into Python, so executing it takes the
 * GIL. */
#define CYXLA_NEEDS_PYTHON 1u

/* cyxla_program_spec.route: through PJRT_LoadedExecutable_Execute, or by calling the program's
 * kernels directly. CYXLA_ROUTE_FUSED is reserved: no program has it yet. Callers treat a value
 * that they do not know like the others. */
#define CYXLA_ROUTE_PJRT 0
#define CYXLA_ROUTE_DIRECT 1
#define CYXLA_ROUTE_FUSED 2

/* Element types: the values of PJRT_Buffer_Type in the PJRT header. PRED is bool, one byte. The
 * elements of S2, U2, S4, U4, F4E2M1FN and TOKEN do not have whole bytes: itemsize() gives 0 for
 * them, and programs that take or return them are not compiled. */
enum {
  CYXLA_PRED = 1,
  CYXLA_S8 = 2,
  CYXLA_S16 = 3,
  CYXLA_S32 = 4,
  CYXLA_S64 = 5,
  CYXLA_U8 = 6,
  CYXLA_U16 = 7,
  CYXLA_U32 = 8,
  CYXLA_U64 = 9,
  CYXLA_F16 = 10,
  CYXLA_F32 = 11,
  CYXLA_F64 = 12,
  CYXLA_BF16 = 13,
  CYXLA_C64 = 14,
  CYXLA_C128 = 15,
  CYXLA_F8E5M2 = 16,
  CYXLA_F8E4M3FN = 17,
  CYXLA_F8E4M3B11FNUZ = 18,
  CYXLA_F8E5M2FNUZ = 19,
  CYXLA_F8E4M3FNUZ = 20,
  CYXLA_S4 = 21,
  CYXLA_U4 = 22,
  CYXLA_TOKEN = 23,
  CYXLA_S2 = 24,
  CYXLA_U2 = 25,
  CYXLA_F8E4M3 = 26,
  CYXLA_F8E3M4 = 27,
  CYXLA_F8E8M0FNU = 28,
  CYXLA_F4E2M1FN = 29
};

/* What last_error_code() returns: the kind of failure, which is one exception class in Python. */
enum {
  CYXLA_ERROR_NONE = 0,
  CYXLA_ERROR_INTERNAL = 1,    /* Error: out of memory, or a fault in cyxla */
  CYXLA_ERROR_ARGUMENT = 2,    /* ArgumentError */
  CYXLA_ERROR_PLUGIN = 3,      /* PluginError */
  CYXLA_ERROR_COMPILE = 4,     /* CompileError */
  CYXLA_ERROR_EXECUTION = 5,   /* ExecutionError: the plugin or a kernel failed */
  CYXLA_ERROR_UNSUPPORTED = 6, /* UnsupportedError */
  CYXLA_ERROR_SHUTDOWN = 7,    /* ShutdownError: the runtime or the Executable is gone */
  CYXLA_ERROR_FORK = 8         /* ForkError: called in a forked child */
};

/* One input of an execution: dense, row-major, native byte order. `data` may be NULL when the input
 * has no elements. The memory is read during the call only and is never written. Each byte of a
 * CYXLA_PRED input must be 0 or 1: programs compute wrong numbers from other bytes. With
 * CYXLA_CHECK=1 in the environment calls refuse such bytes. */
typedef struct cyxla_input {
  const void* data;
  int32_t element_type; /* CYXLA_F64 and so on, as program_spec.input_types gives it */
  size_t num_elements;  /* number of elements, not of bytes; 1 for a scalar */
} cyxla_input;

/* What a compiled program takes and gives. Allocated by cyxla and read-only. It stays valid while
 * the Python Executable lives or until every retain() is matched by a release(), and stays readable
 * after shutdown; so do the arrays and strings that it points to. What execute() reads comes first,
 * in 64 bytes. Members up to `name` exist in every cyxla of ABI version 2. */
typedef struct cyxla_program_spec {
  size_t struct_size;           /* sizeof(cyxla_program_spec) of the cyxla that made it */
  uint32_t flags;               /* CYXLA_NEEDS_PYTHON or 0 */
  int32_t route;                /* how it is executed: CYXLA_ROUTE_PJRT or CYXLA_ROUTE_DIRECT */
  size_t num_inputs;            /* length of the input arrays below */
  size_t num_outputs;           /* length of the output arrays below */
  const void* impl;             /* cyxla's own */
  const int32_t* input_types;   /* PJRT_Buffer_Type of each input */
  const size_t* input_elements; /* number of elements of each input */
  const size_t* input_bytes;    /* size of each input in bytes */

  const int32_t* output_types;   /* PJRT_Buffer_Type of each output */
  const size_t* output_elements; /* number of elements of each output */
  const size_t* output_bytes;    /* size of each output in bytes */
  const size_t* input_ranks;     /* number of dimensions of each input; 0 for a scalar */
  const size_t* output_ranks;    /* number of dimensions of each output */
  const int64_t* const*
      input_dimensions; /* of each input, as many as its rank; may be NULL for 0 */
  const int64_t* const* output_dimensions; /* of each output, likewise */

  /* UTF-8 with a final zero, empty where unknown, never NULL: paths in the arguments of the Python
   * function ("x", "d['a']") and in its result ("result[0]"), and the program's name. */
  const char* const* input_names;
  const char* const* output_names;
  const char* name;
} cyxla_program_spec;

/* A program with its inputs and outputs bound to fixed addresses; made by prepare(). */
typedef struct cyxla_call cyxla_call;

/* The functions of cyxla. Every function except program_spec may be called without the GIL and from
 * any thread, Python's or not; none touches a Python object. Members up to rebind() exist in every
 * cyxla of ABI version 2. */
typedef struct cyxla_api {
  size_t struct_size;  /* sizeof(cyxla_api) of the cyxla that filled it */
  int32_t abi_version; /* CYXLA_ABI_VERSION of that cyxla */
  uint32_t spec_size;  /* sizeof(cyxla_program_spec) of that cyxla */

  /* Runs a program. `inputs` holds spec->num_inputs entries and `outputs` spec->num_outputs
   * addresses; output i is written to outputs[i], spec->output_bytes[i] bytes, dense and row-major,
   * or dropped where outputs[i] is NULL. With zero_copy != 0 inputs at CYXLA_ALIGNMENT-aligned
   * addresses are read in place where the plugin can; all others are copied first. Outputs may
   * overlap inputs only when zero_copy is 0. Returns 0, or -1 with the reason in last_error(). Safe
   * from any number of threads at once. */
  int (*execute)(const cyxla_program_spec* spec, const cyxla_input* inputs, void* const* outputs,
                 int zero_copy);

  /* The spec of a cyxla.Executable (a PyObject*), borrowed. Needs the GIL. NULL with a Python
   * exception set when `executable` is something else. */
  const cyxla_program_spec* (*program_spec)(void* executable);

  /* Keep a spec and its compiled program beyond the Executable's life. Each retain() needs one
   * release(); one too many is recorded as an error and ignored while the program exists, and is
   * undefined afterwards. NULL is allowed. */
  void (*retain)(const cyxla_program_spec* spec);
  void (*release)(const cyxla_program_spec* spec);

  /* Binds inputs and outputs to addresses once, for callers that keep their arrays: call() then
   * reads and writes the same memory each time. The memory must outlive the call object; the two
   * arrays need not. A call object is used by one thread at a time and retains its program. NULL on
   * failure, with the reason in last_error(). */
  cyxla_call* (*prepare)(const cyxla_program_spec* spec, const cyxla_input* inputs,
                         void* const* outputs, int zero_copy);
  int (*call)(cyxla_call* call); /* as execute */
  /* Frees a call object; NULL is allowed. Using it afterwards, for call() or a second discard(), is
   * undefined, as is discarding it while another thread calls it. */
  void (*discard)(cyxla_call* call);

  /* Copies the message of this thread's last failure, cut to `size` bytes with its final zero, into
   * `buffer`. Returns the length of the whole message; 0 when this thread never failed. */
  size_t (*last_error)(char* buffer, size_t size);

  /* Memory at a CYXLA_ALIGNMENT-aligned address; NULL when there is none left. free_aligned(NULL)
   * is allowed. */
  void* (*aligned_memory)(size_t size);
  void (*free_aligned)(void* pointer);

  /* Bytes of one element of a PJRT_Buffer_Type; 0 for a type without whole bytes or an unknown one.
   */
  size_t (*itemsize)(int32_t element_type);

  /* The kind of this thread's last failure, CYXLA_ERROR_ARGUMENT and so on; CYXLA_ERROR_NONE when
   * it never failed. Calls that succeed leave code and message as they are; clear_error() removes
   * both. The failures that error_info() counts for the process stay. */
  int32_t (*last_error_code)(void);
  void (*clear_error)(void);

  /* Binds one input or output of a prepared call to another address: `index` counts the inputs,
   * then the outputs. The array there has the type and size of the old one, and the next call()
   * treats it as prepare() would have: what is not aligned or overlaps is copied. NULL drops an
   * output, and is allowed for an input without elements. Allocates nothing; the next call() may,
   * where it needs a view of the new address or memory to copy through. Returns 0, or -1 with the
   * reason in last_error(); the call then keeps its old address. */
  int (*rebind)(cyxla_call* call, size_t index, const void* address);
} cyxla_api;

#ifdef __cplusplus
}
#endif

#endif /* CYXLA_CYXLA_H_ */
