/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of XLA's typed FFI, as a user would write them in C: they scale an array of floats. The
 * name ends with the minor version of the FFI that a handler declares; without a number it is 1.
 */
#include <string.h>

#include "xla/ffi/api/c_api.h"

static XLA_FFI_Error* scale(XLA_FFI_CallFrame* frame, float factor, int minor_version) {
  const XLA_FFI_Buffer* input;
  const XLA_FFI_Buffer* output;
  int64_t count = 1;
  if (frame->extension_start != NULL &&
      frame->extension_start->type == XLA_FFI_Extension_Metadata) {
    XLA_FFI_Metadata* metadata = ((XLA_FFI_Metadata_Extension*)frame->extension_start)->metadata;
    metadata->api_version.major_version = 0;
    metadata->api_version.minor_version = minor_version;
    metadata->traits = 0;
    return NULL;
  }
  input = (const XLA_FFI_Buffer*)frame->args.args[0];
  output = (const XLA_FFI_Buffer*)frame->rets.rets[0];
  for (int64_t i = 0; i < input->rank; ++i) {
    count *= input->dims[i];
  }
  for (int64_t i = 0; i < count; ++i) {
    ((float*)output->data)[i] = factor * ((const float*)input->data)[i];
  }
  return NULL;
}

XLA_FFI_Error* twice(XLA_FFI_CallFrame* frame) { return scale(frame, 2.0f, 1); }
XLA_FFI_Error* thrice(XLA_FFI_CallFrame* frame) { return scale(frame, 3.0f, 1); }
XLA_FFI_Error* twice_5(XLA_FFI_CallFrame* frame) { return scale(frame, 2.0f, 5); }
XLA_FFI_Error* twice_6(XLA_FFI_CallFrame* frame) { return scale(frame, 2.0f, 6); }

/* Its error must reach the caller through the adapter. */
XLA_FFI_Error* failing_5(XLA_FFI_CallFrame* frame) {
  XLA_FFI_Error_Create_Args args;
  if (frame->extension_start != NULL) {
    return scale(frame, 0.0f, 5);
  }
  memset(&args, 0, sizeof args);
  args.struct_size = XLA_FFI_Error_Create_Args_STRUCT_SIZE;
  args.message = "the handler has failed on purpose";
  args.errc = XLA_FFI_Error_Code_INTERNAL;
  return frame->api->XLA_FFI_Error_Create(&args);
}
