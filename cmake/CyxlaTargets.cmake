# SPDX-License-Identifier: Apache-2.0
# Defines how layers are compiled: cyxla_add_layer(base) makes the static library cyxla_base from
# the sources beside and below the calling CMakeLists.txt, linked to the layers named after it.

# Without -Wpedantic, because g++ 12 then rejects the PJRT header despite pragmas and -isystem.
# Without -Wrestrict, because it misfires on std::string in g++ 12 (GCC bug 105329).
set(CYXLA_WARNINGS -Wall -Wextra -Wshadow -Wconversion -Wno-missing-field-initializers
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
if(CYXLA_WARNINGS_AS_ERRORS)
  list(APPEND CYXLA_WARNINGS -Werror)
endif()

if(CYXLA_SANITIZE)
  # Sanitizer instrumentation makes -Wmaybe-uninitialized misfire. -Wtsan warns that ThreadSanitizer
  # does not model fences; they are still executed.
  list(APPEND CYXLA_WARNINGS $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  # Sanitizers must reach every target, tests included, or the link fails.
  add_compile_options(-fsanitize=${CYXLA_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${CYXLA_SANITIZE})
endif()

if(CYXLA_CLANG_TIDY)
  find_program(CLANG_TIDY NAMES clang-tidy clang-tidy-14 REQUIRED)
endif()

function(cyxla_add_layer layer)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  add_library(cyxla_${layer} STATIC ${sources})
  target_include_directories(
    cyxla_${layer} PUBLIC "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
  target_compile_options(cyxla_${layer} PRIVATE ${CYXLA_WARNINGS})
  if(CYXLA_CLANG_TIDY)
    # clang-tidy gets g++'s flags and does not know all of them.
    set_target_properties(cyxla_${layer} PROPERTIES
      CXX_CLANG_TIDY "${CLANG_TIDY};--quiet;--extra-arg=-Wno-unknown-warning-option")
    set_source_files_properties(
      ${sources} PROPERTIES OBJECT_DEPENDS "${PROJECT_SOURCE_DIR}/.clang-tidy")
  endif()
  list(TRANSFORM ARGN PREPEND cyxla_ OUTPUT_VARIABLE left)
  target_link_libraries(cyxla_${layer} PUBLIC ${left} Threads::Threads ${CMAKE_DL_LIBS})
endfunction()
