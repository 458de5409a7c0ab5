// Arguments of the program's calls, out of the registers and stack slots that they came in.
#pragma once

#include "adapters/pnetcdf/adapter.hpp"

namespace ioweir::pnetcdf {

using adapters::argument;
using adapters::word_of;

}  // namespace ioweir::pnetcdf
