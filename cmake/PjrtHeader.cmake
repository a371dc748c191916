# SPDX-License-Identifier: Apache-2.0
# Sets pjrt_include_dir to the folder of pjrt_c_api.h and defines the target cyxla::pjrt_header.

# Not cached: pip's build environment does not exist any more when the build folder is reused.
set(pjrt_include_dir "${CYXLA_PJRT_INCLUDE_DIR}")
if(NOT pjrt_include_dir)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_LIST_DIR}/find_pjrt_header.py"
    OUTPUT_VARIABLE pjrt_include_dir OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
if(NOT EXISTS "${pjrt_include_dir}/pjrt_c_api.h")
  message(FATAL_ERROR
    "pjrt_c_api.h not found: CYXLA_PJRT_INCLUDE_DIR is '${CYXLA_PJRT_INCLUDE_DIR}', and the packages "
    "of '${Python_EXECUTABLE}' were searched when that is empty. Either install the package that "
    "ships the header,\n"
    "  ${Python_EXECUTABLE} -m pip install xla-cpu-pjrt==0.0.1\n"
    "or pass -DCYXLA_PJRT_INCLUDE_DIR=<folder that holds pjrt_c_api.h>.")
endif()
message(STATUS "PJRT header: ${pjrt_include_dir}/pjrt_c_api.h")

add_library(cyxla_pjrt_header INTERFACE)
add_library(cyxla::pjrt_header ALIAS cyxla_pjrt_header)
target_include_directories(cyxla_pjrt_header SYSTEM INTERFACE "${pjrt_include_dir}")
