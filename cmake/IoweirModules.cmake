# ioweir_module(NAME SOURCES ... [DEPENDS ...] [ALONE ...] [ONE_BY_ONE] [CHECKED]): a static library for one module; headers are included from src/ as
# "module/file.hpp". It is compiled where something that is built needs it: the package needs fewer modules by themselves than the tests.
# With IOWEIR_MODULES the tests link what the package's build has compiled, brought up to date by that build, and do not compile it again.
# CHECKED: its code has checks that NDEBUG leaves out, so that the tests compile it for themselves.
# The sources of a module are compiled together (CMake's unity build), for most of the compiler's time goes into headers and templates that
# each source has again: names in unnamed namespaces differ within a module. ALONE: those sources whose names do not. ONE_BY_ONE: all of them
# are compiled alone. Six together take half as long again as forty do; who changes one source after another sets IOWEIR_TOGETHER lower.
# ioweir_std_headers(TARGET...): these have large headers of the standard library precompiled. Each source takes 1.5 s less of a processor,
# all of the package's a third less. A source includes what it uses all the same: Clang, and IOWEIR_PRECOMPILED=OFF, have none of it.
# ioweir_unit_test(NAME SOURCES ... [DEPENDS ...]): a GoogleTest program that lies beside the code it tests.
# ioweir_test_headers(TARGET...): these tests have GoogleTest's headers and large ones of the standard library precompiled, and
# RapidCheck's where they link it: read by each of some 200 sources, they take a third of the compiler's time.
include_guard()
set(IOWEIR_TOGETHER 40 CACHE STRING "How many sources of a module are compiled together at most")
option(IOWEIR_PRECOMPILED "Precompile large headers of the standard library (GCC only)" ON)

# An archive of the package's build as the library NAME.
function(_ioweir_compiled_module name archive)
  add_library(${name} STATIC IMPORTED GLOBAL)
  set_target_properties(${name} PROPERTIES IMPORTED_LOCATION "${archive}")
  add_dependencies(${name} ioweir_compiled_modules)
  get_property(names GLOBAL PROPERTY IOWEIR_COMPILED_MODULES)
  if(NOT names)
    cmake_language(DEFER DIRECTORY "${PROJECT_SOURCE_DIR}" CALL _ioweir_compile_modules)
  endif()
  set_property(GLOBAL APPEND PROPERTY IOWEIR_COMPILED_MODULES ${name})
  set_property(GLOBAL APPEND PROPERTY IOWEIR_COMPILED_ARCHIVES "${archive}")
endfunction()

# The package's build brings all of them up to date at once: two builds in one directory disturb each other.
function(_ioweir_compile_modules)
  get_property(names GLOBAL PROPERTY IOWEIR_COMPILED_MODULES)
  get_property(archives GLOBAL PROPERTY IOWEIR_COMPILED_ARCHIVES)
  add_custom_target(ioweir_compiled_modules
    COMMAND ${CMAKE_COMMAND} --build "${IOWEIR_MODULES}" --target ${names}
    BYPRODUCTS ${archives}
    COMMENT "Taking modules from the package's build")
endfunction()

function(ioweir_module name)
  cmake_parse_arguments(ARG "ONE_BY_ONE;CHECKED" "" "SOURCES;DEPENDS;ALONE" ${ARGN})
  file(RELATIVE_PATH directory "${PROJECT_BINARY_DIR}" "${CMAKE_CURRENT_BINARY_DIR}")
  set(archive "${IOWEIR_MODULES}/${directory}/lib${name}.a")
  if(ARG_SOURCES AND IOWEIR_MODULES AND NOT ARG_CHECKED AND EXISTS "${archive}")
    _ioweir_compiled_module(${name} "${archive}")
    set(scope INTERFACE)
  elseif(ARG_SOURCES)
    add_library(${name} STATIC EXCLUDE_FROM_ALL ${ARG_SOURCES})
    if(NOT ARG_ONE_BY_ONE)
      set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${IOWEIR_TOGETHER})
    endif()
    if(ARG_ALONE)
      set_source_files_properties(${ARG_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
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
  set_target_properties(${name} PROPERTIES IOWEIR_SOURCES "${ARG_SOURCES}")
  if(scope STREQUAL "PUBLIC")
    ioweir_std_headers(${name})
  endif()
endfunction()

function(ioweir_std_headers)
  if(NOT IOWEIR_PRECOMPILED OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  if(NOT TARGET ioweir_std_headers)
    _ioweir_empty_source()
    add_library(ioweir_std_headers STATIC EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/precompiled.cpp")
    target_precompile_headers(ioweir_std_headers PRIVATE
      "$<$<COMPILE_LANGUAGE:CXX>:<algorithm$<ANGLE-R>;<array$<ANGLE-R>;<atomic$<ANGLE-R>;<filesystem$<ANGLE-R>;<functional$<ANGLE-R>;<map$<ANGLE-R>;<memory$<ANGLE-R>;<mutex$<ANGLE-R>;<optional$<ANGLE-R>;<span$<ANGLE-R>;<string$<ANGLE-R>;<unordered_map$<ANGLE-R>;<vector$<ANGLE-R>>")
    list(APPEND ARGN ioweir_std_headers)
  endif()
  foreach(target IN LISTS ARGN)
    if(NOT target STREQUAL "ioweir_std_headers")
      target_precompile_headers(${target} REUSE_FROM ioweir_std_headers)
    endif()
    # So that ccache can tell what is included.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
    if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
      # GCC 12 forgets that what is precompiled are the system's headers, and warns of std::string's inside (as above, 105651).
      target_compile_options(${target} PRIVATE
        $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>)
    endif()
  endforeach()
endfunction()

function(_ioweir_empty_source)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/precompiled.cpp" CONTENT "int main() {}\n")
endfunction()

# A program, because what it precompiles is for programs: libraries are compiled with other flags.
function(_ioweir_precompiled name libraries headers)
  if(NOT TARGET ${name})
    _ioweir_empty_source()
    add_executable(${name} "${PROJECT_BINARY_DIR}/precompiled.cpp")
    target_link_libraries(${name} PRIVATE ${libraries})
    target_precompile_headers(${name} PRIVATE ${headers})
  endif()
endfunction()

function(ioweir_test_headers)
  set(headers <gtest/gtest.h> <algorithm> <chrono> <filesystem> <string> <vector>)
  foreach(target IN LISTS ARGN)
    get_target_property(libraries ${target} LINK_LIBRARIES)
    if("rapidcheck" IN_LIST libraries)
      _ioweir_precompiled(ioweir_precompiled_properties "GTest::gtest;rapidcheck"
                          "${headers};<rapidcheck.h>;<rapidcheck/gtest.h>;<functional>;<map>;<memory>;<optional>;<set>")
      target_precompile_headers(${target} REUSE_FROM ioweir_precompiled_properties)
    else()
      _ioweir_precompiled(ioweir_precompiled GTest::gtest "${headers}")
      target_precompile_headers(${target} REUSE_FROM ioweir_precompiled)
    endif()
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
