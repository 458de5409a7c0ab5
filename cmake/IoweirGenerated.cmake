# Code generated from spec/*.toml by tools/generate.py, into the build directory.
include_guard()
set(IOWEIR_GENERATED_DIR "${PROJECT_BINARY_DIR}/generated")
file(GLOB _ioweir_spec CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/spec/*.toml")
file(GLOB _ioweir_generator CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/generate.py" "${PROJECT_SOURCE_DIR}/tools/generator/*.py")
execute_process(COMMAND ${Python3_EXECUTABLE} "${PROJECT_SOURCE_DIR}/tools/generate.py" --list
                OUTPUT_VARIABLE _ioweir_outputs OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" _ioweir_outputs "${_ioweir_outputs}")
file(MAKE_DIRECTORY "${IOWEIR_GENERATED_DIR}")  # imported libraries may name only what is there
list(TRANSFORM _ioweir_outputs PREPEND "${IOWEIR_GENERATED_DIR}/")
add_custom_command(
  OUTPUT ${_ioweir_outputs}
  COMMAND ${Python3_EXECUTABLE} "${PROJECT_SOURCE_DIR}/tools/generate.py" --out "${IOWEIR_GENERATED_DIR}"
  DEPENDS ${_ioweir_spec} ${_ioweir_generator}
  COMMENT "Generating code from spec/")
add_custom_target(ioweir_generated DEPENDS ${_ioweir_outputs})
