# ioweir_module(NAME SOURCES ... [DEPENDS ...] [ONE_BY_ONE]): a static library for one module; headers are included from src/ as
# "module/file.hpp". It is compiled where something that is built needs it: the package needs fewer modules by themselves than the tests.
# Some sources are compiled together (CMake's unity build), for most of the compiler's time goes into headers: names in unnamed
# namespaces differ within a module, or it is compiled ONE_BY_ONE.
# ioweir_unit_test(NAME SOURCES ... [DEPENDS ...]): a GoogleTest program that lies beside the code it tests.
# ioweir_test_headers(TARGET...): these tests have GoogleTest's headers and large ones of the standard library precompiled: read by each
# of some 200 sources, they take a third of the compiler's time.
include_guard()
set(IOWEIR_TOGETHER 6)

function(ioweir_module name)
  cmake_parse_arguments(ARG "ONE_BY_ONE" "" "SOURCES;DEPENDS" ${ARGN})
  if(ARG_SOURCES)
    add_library(${name} STATIC EXCLUDE_FROM_ALL ${ARG_SOURCES})
    if(NOT ARG_ONE_BY_ONE)
      set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${IOWEIR_TOGETHER})
    endif()
    set(scope PUBLIC)
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${name} ${scope} "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include"
                             "${IOWEIR_GENERATED_DIR}")
  target_link_libraries(${name} ${scope} ${ARG_DEPENDS})
  add_dependencies(${name} ioweir_generated)
endfunction()

function(ioweir_test_headers)
  if(NOT TARGET ioweir_precompiled)
    file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/precompiled.cpp" CONTENT "int main() {}\n")
    # A program, because what it precompiles is for programs: libraries are compiled with other flags.
    add_executable(ioweir_precompiled "${PROJECT_BINARY_DIR}/precompiled.cpp")
    target_link_libraries(ioweir_precompiled PRIVATE GTest::gtest)
    target_precompile_headers(ioweir_precompiled PRIVATE <gtest/gtest.h> <algorithm> <chrono> <filesystem> <string> <vector>)
  endif()
  foreach(target IN LISTS ARGN)
    target_precompile_headers(${target} REUSE_FROM ioweir_precompiled)
  endforeach()
endfunction()

function(ioweir_unit_test name)
  if(NOT IOWEIR_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} GTest::gtest_main)
  ioweir_test_headers(${name})
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60)
endfunction()
