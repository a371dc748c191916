/* SPDX-License-Identifier: Apache-2.0 */
/* Controls the fake PJRT plugin. The plugin's library exports these functions; tests find them with
 * dlsym. Any thread may call them at any time. Names of PJRT functions are the PJRT header's. */
#ifndef CYXLA_TESTS_FAKE_PLUGIN_CONTROL_H_
#define CYXLA_TESTS_FAKE_PLUGIN_CONTROL_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of objects that the plugin hands out and expects back. */
enum fake_plugin_kind {
  FAKE_PLUGIN_CLIENT,
  FAKE_PLUGIN_BUFFER, /* buffers that own their memory */
  FAKE_PLUGIN_VIEW,   /* buffers over the caller's memory */
  FAKE_PLUGIN_EXECUTABLE,
  FAKE_PLUGIN_LOADED_EXECUTABLE,
  FAKE_PLUGIN_SERIALIZED_EXECUTABLE,
  FAKE_PLUGIN_EVENT,
  FAKE_PLUGIN_ERROR,
  FAKE_PLUGIN_NUM_KINDS
};

/* The plugin's behaviour. The default is the first value, or the one in brackets. */
enum fake_plugin_setting {
  FAKE_PLUGIN_API_MAJOR,  /* [the header's] */
  FAKE_PLUGIN_API_MINOR,  /* [the header's] */
  FAKE_PLUGIN_TABLE_SIZE, /* struct_size of the function table [the header's] */
  FAKE_PLUGIN_NULL_TABLE, /* 1: GetPjrtApi returns null */
  FAKE_PLUGIN_FFI,        /* 0 FFI extension, 1 none, 2 one without register_handler in its size,
                             3 one whose register_handler is null */
  FAKE_PLUGIN_FFI_MAJOR,  /* [0] version of XLA's FFI */
  FAKE_PLUGIN_FFI_MINOR,  /* [4] */
  FAKE_PLUGIN_FFI_NO_METADATA, /* 1: keeps handlers without asking for their version */
  FAKE_PLUGIN_GPU_CUSTOM_CALL, /* 0: no extension for custom calls on GPUs, 1: one, 2: one without
                                  its function in its size, 3: one whose function is null */
  FAKE_PLUGIN_STABLEHLO_ATTRIBUTE, /* 0: a list of three, 1: absent, 2: a list of two, 3: a string
                                    */
  FAKE_PLUGIN_PLATFORM,            /* 0: the platform is called "fake", 1: "cpu" */
  FAKE_PLUGIN_NUM_DEVICES,         /* [1] addressable devices, at most 4 */
  FAKE_PLUGIN_IGNORE_OPTIONS,      /* 1: unknown create options are ignored, not refused */
  FAKE_PLUGIN_VIEWS,      /* 0: alias the caller's memory, 1: silently copy it, 2: UNIMPLEMENTED */
  FAKE_PLUGIN_NOT_ON_CPU, /* 1: buffers are not in host memory, their pointers are useless */
  FAKE_PLUGIN_ASYNCHRONOUS, /* 1: executions and copies run on the client's own thread, after the
                               call that starts them */
  FAKE_PLUGIN_DELAY_US,     /* [0] minimum time of each execution and copy */
  FAKE_PLUGIN_HOLD,         /* 1: executions wait until it is 0 again */
  FAKE_PLUGIN_DESTROY_DELAY_MS,    /* [0] minimum time of destroying a buffer */
  FAKE_PLUGIN_NULL_EXECUTE_EVENTS, /* 1: Execute leaves device_complete_events null (a program
                                      without outputs has then ended when Execute returns) */
  FAKE_PLUGIN_NULL_COPY_EVENTS,    /* 1: copies complete at once, without an event */
  FAKE_PLUGIN_CONTRADICTION, /* 1: one output type too few, 2: dimensions of one output too few */
  FAKE_PLUGIN_CODE_BYTES,    /* [0] generated code size that GetCompiledMemoryStats reports */
  FAKE_PLUGIN_SERIALIZED, /* 0: two object files of 100 and 28 bytes, 1: none, 2: malformed bytes */
  FAKE_PLUGIN_OPTIMIZED,  /* 0: an HLO module of five instructions with its configuration, 1: the
                             module alone, 2: malformed bytes, 3: another format, 4: no instruction
                           */
  FAKE_PLUGIN_FLOPS,      /* 0: cost analysis gives 42 flops, 1: none, 2: as a string */
  FAKE_PLUGIN_RECORD_EXECUTIONS, /* 1: Execute and ToHostBuffer fill their records (a lock between
                                    threads) */
  FAKE_PLUGIN_NEEDS_NO_CANCELLATION, /* 1: a call on a thread that can be cancelled is a misuse */
  FAKE_PLUGIN_MUTE,                  /* 1: PJRT_Error_Message gives no text, 2: an empty one */
  FAKE_PLUGIN_NUM_SETTINGS
};

/* What the plugin records about its calls. */
enum fake_plugin_record {
  FAKE_PLUGIN_POOL_SIZE,       /* PJRT_NPROC of the environment at the last Client_Create */
  FAKE_PLUGIN_CREATE_OPTIONS,  /* a line "name type value" for each option of the last Client_Create
                                */
  FAKE_PLUGIN_COMPILE_OPTIONS, /* the bytes of the last Client_Compile */
  FAKE_PLUGIN_PROGRAM_FORMAT,
  FAKE_PLUGIN_PROGRAM_CODE,
  FAKE_PLUGIN_HOST_LAYOUT,      /* minor_to_major of the last ToHostBuffer, "1 0", or "none" */
  FAKE_PLUGIN_NON_DONATABLE,    /* non_donatable_input_indices of the last Execute, "0 1" */
  FAKE_PLUGIN_FFI_HANDLERS,     /* a line "target platform address" for each handler that was
                                   kept */
  FAKE_PLUGIN_GPU_CUSTOM_CALLS, /* a line "target api_version instantiate prepare initialize
                                   execute" for each handler, addresses but for the version */
  FAKE_PLUGIN_VIOLATION,        /* the first misuse of the API since the last reset */
  FAKE_PLUGIN_NUM_RECORDS
};

/* Restores the default settings and table; clears planned failures, counts and records. Keeps live
 * objects. */
void fake_plugin_reset(void);
void fake_plugin_set(int32_t setting, int64_t value);
/* Sets a slot of the function table to null until the next reset. Returns 0 for an unknown
 * function. */
int32_t fake_plugin_remove_function(const char* function);

/* Makes the nth call of a function from now fail, each call if nth is 0. NULL stands for any
 * function that can fail. A failing Await or Destroy does its work before it reports the error.
 * Returns 0 for an unknown function. */
int32_t fake_plugin_fail(const char* function, uint64_t nth, int32_t code, const char* message);
/* Makes the nth event that a function hands out complete with an error. */
int32_t fake_plugin_fail_event(const char* function, uint64_t nth, int32_t code,
                               const char* message);
/* Makes the nth call of a function report success without doing anything; its results are null.
 * With `with_count`, it reports sizes and counts of 1. Has no effect on functions that destroy or
 * wait. */
int32_t fake_plugin_hollow(const char* function, uint64_t nth, int32_t with_count);
/* Makes the nth call of a function throw a std::runtime_error with that text, or an int when it is
 * empty. A function that destroys or waits does its work first. */
int32_t fake_plugin_throw(const char* function, uint64_t nth, const char* message);
/* Returns the number of planned failures since the last reset. */
uint64_t fake_plugin_failures(void);

/* Calls `callback` in every execution, on the thread that runs it, before the outputs are computed.
 * NULL removes it. Must not be called while executions run. */
void fake_plugin_on_execute(void (*callback)(void* user_arg), void* user_arg);

/* Calls the handler of a custom-call target as an execution does. Returns 1 if it succeeds, -1 if
 * it fails, 0 for an unknown target. The target "built_in" is the plugin's own. */
int32_t fake_plugin_call_target(const char* target, const char* platform, void* context);

/* Returns the number of live objects; of all kinds for a negative kind. */
int64_t fake_plugin_live(int32_t kind);
/* Returns the calls of a function since the last reset; of all functions for NULL. */
uint64_t fake_plugin_calls(const char* function);
/* Returns the number of executions in progress. */
int64_t fake_plugin_running(void);
/* Returns the misuses of the API since the last reset: dead or foreign handles, wrong struct sizes,
 * wrong order of destruction, a wrong floating-point state, or, with
 * FAKE_PLUGIN_NEEDS_NO_CANCELLATION, a call on a thread that can be cancelled. */
uint64_t fake_plugin_violations(void);
/* Returns 1 while the calling thread runs a function of the table. */
int32_t fake_plugin_inside(void);
/* Copies a record, cut to `size`, and returns its full length. */
size_t fake_plugin_recorded(int32_t record, char* buffer, size_t size);

/* Returns the functions that can be made to fail, by index; NULL after the last. */
const char* fake_plugin_function(size_t index);

#ifdef __cplusplus
}
#endif

#endif /* CYXLA_TESTS_FAKE_PLUGIN_CONTROL_H_ */
