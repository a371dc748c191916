// SPDX-License-Identifier: Apache-2.0
#include "stub_table.h"

#include <cstring>

#include "require.h"

struct PJRT_Error {
  std::string_view text;
  PJRT_Error_Code code = PJRT_Error_Code_UNKNOWN;
  bool is_live = false;
};

namespace cyxla::fuzz {
namespace {

PJRT_Error the_error;

void check(const PJRT_Error* error) {
  require(error == &the_error && error->is_live, "an error that is none was used");
}

void destroy(PJRT_Error_Destroy_Args* args) {
  check(args->error);
  the_error.is_live = false;
}

void message(PJRT_Error_Message_Args* args) {
  check(args->error);
  args->message = args->error->text.data();
  args->message_size = args->error->text.size();
}

PJRT_Error* get_code(PJRT_Error_GetCode_Args* args) {
  check(args->error);
  args->code = args->error->code;
  return nullptr;
}

PJRT_Error* unexpected(void* /*args*/) {
  require(false, "an unneeded function was called");
  return nullptr;
}

}  // namespace

PJRT_Api make_stub_table() {
  PJRT_Api table = {};
  auto* const function = &unexpected;
  for (std::size_t i = 0; i < kNumSlots; ++i) {
    std::memcpy(reinterpret_cast<char*>(&table) + kFirstSlot + i * sizeof(void*), &function,
                sizeof(void*));
  }
  table.struct_size = PJRT_Api_STRUCT_SIZE;
  table.pjrt_api_version.struct_size = PJRT_Api_Version_STRUCT_SIZE;
  table.pjrt_api_version.major_version = PJRT_API_MAJOR;
  table.pjrt_api_version.minor_version = PJRT_API_MINOR;
  table.PJRT_Error_Destroy = destroy;
  table.PJRT_Error_Message = message;
  table.PJRT_Error_GetCode = get_code;
  return table;
}

PJRT_Error* make_error(std::string_view text, PJRT_Error_Code code) {
  the_error = {text, code, true};
  return &the_error;
}

bool errors_are_destroyed() { return !the_error.is_live; }

}  // namespace cyxla::fuzz
