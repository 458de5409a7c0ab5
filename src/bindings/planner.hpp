// Bindings of the planner's plan file (planner.cpp), added to the module by module.cpp.
#pragma once

#include <nanobind/nanobind.h>

void bind_planner(nanobind::module_& m);
void bind_kernels(nanobind::module_& m);
