// Bindings of the plan file (planner.cpp), the kernels (kernels.cpp), plans (explain.cpp), containers (container.cpp), partitioned files (partition.cpp) and storage targets (probe.cpp), added to the module by module.cpp.
#pragma once

#include <nanobind/nanobind.h>

void bind_planner(nanobind::module_& m);
void bind_kernels(nanobind::module_& m);
void bind_explain(nanobind::module_& m);
void bind_sim(nanobind::module_& m);
void bind_container(nanobind::module_& m);
void bind_probe(nanobind::module_& m);
void bind_partition(nanobind::module_& m);
