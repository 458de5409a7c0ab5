# ioweir_mpi_test(NAME KIND openmpi|mpich RANKS n PROGRAM target [ARGUMENTS ...] [LAUNCH ...]
#                 [TIMEOUT_S s] [LONG]): a ctest that runs a program
# under that library's launcher. Every one has a time limit: a hang is a failure. More ranks than processors are normal here.
# LONG: its label is "long", which `make test` leaves out and `make test-long` runs (ioweir_is_long tells which).
# LAUNCH: words between the launcher and the program, such as env and variables that only ranks may see.
include_guard()
find_program(IOWEIR_MPIEXEC_OPENMPI NAMES mpirun.openmpi)
find_program(IOWEIR_MPIEXEC_MPICH NAMES mpiexec.mpich)

# What LD_PRELOAD must begin with: a sanitizer's run-time library comes first among those that are preloaded.
set(IOWEIR_PRELOAD_FIRST "")
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=address")
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libasan.so OUTPUT_VARIABLE IOWEIR_PRELOAD_FIRST
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(APPEND IOWEIR_PRELOAD_FIRST ":")
endif()

function(ioweir_mpi_test name)
  cmake_parse_arguments(ARG "LONG" "KIND;RANKS;PROGRAM;TIMEOUT_S" "ARGUMENTS;LAUNCH" ${ARGN})
  if(NOT ARG_TIMEOUT_S)
    set(ARG_TIMEOUT_S 120)
  endif()
  if(ARG_KIND STREQUAL "openmpi")
    set(launcher "${IOWEIR_MPIEXEC_OPENMPI}" --allow-run-as-root --oversubscribe)
  else()
    set(launcher "${IOWEIR_MPIEXEC_MPICH}")
    if(TARGET mpich_yields AND ARG_RANKS GREATER 1 AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize=thread")
      list(APPEND launcher -genv LD_PRELOAD "${IOWEIR_PRELOAD_FIRST}$<TARGET_FILE:mpich_yields>")
    endif()
  endif()
  # The launcher leaves its ranks behind when ctest kills it; timeout(1) ends it in an orderly way a little earlier.
  math(EXPR limit_s "${ARG_TIMEOUT_S} - 5")
  add_test(NAME ${name}
           COMMAND timeout -k 3 ${limit_s} ${launcher} -n ${ARG_RANKS} ${ARG_LAUNCH} $<TARGET_FILE:${ARG_PROGRAM}> ${ARG_ARGUMENTS})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT_S} PROCESSORS ${ARG_RANKS} LABELS "mpi;${ARG_KIND}")
  if(ARG_LONG)
    set_property(TEST ${name} APPEND PROPERTY LABELS long)
  endif()
endfunction()

# ioweir_is_long(VARIABLE KIND POSITION): whether the shape at this position of a list (0, 1, ...) is left to `make test-long`. Of two
# neighbours each library has one, and both have the first.
function(ioweir_is_long variable kind position)
  math(EXPR is_odd "${position} % 2")
  set(${variable} "" PARENT_SCOPE)
  if((kind STREQUAL "openmpi" AND NOT is_odd AND position GREATER 0) OR (kind STREQUAL "mpich" AND is_odd))
    set(${variable} LONG PARENT_SCOPE)
  endif()
endfunction()
