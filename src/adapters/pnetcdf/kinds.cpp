#include "adapters/pnetcdf/kinds.hpp"

#include <unordered_map>

#include "ncsub/call_form.hpp"

namespace ioweir::pnetcdf {
namespace {

const std::unordered_map<std::string_view, Kind>& kinds() {
    static const auto& all = *new std::unordered_map<std::string_view, Kind>{
        {"ncmpi_create", Kind::create},
        {"ncmpi_open", Kind::open},
        {"ncmpi_delete", Kind::remove},
        {"ncmpi_inq_files_opened", Kind::files},
        {"ncmpi_enddef", Kind::end_define},
        {"ncmpi__enddef", Kind::end_define},
        {"ncmpi_redef", Kind::begin_define},
        {"ncmpi_close", Kind::close},
        {"ncmpi_abort", Kind::abort},
        {"ncmpi_wait", Kind::wait},
        {"ncmpi_wait_all", Kind::wait_all},
        {"ncmpi_cancel", Kind::cancel},
        {"ncmpi_fill_var_rec", Kind::fill_record},
        {"ncmpi_sync_numrecs", Kind::records},
        {"ncmpi_buffer_attach", Kind::master},
        {"ncmpi_buffer_detach", Kind::detach},
        {"ncmpi_inq_buffer_usage", Kind::usage},
        {"ncmpi_inq_buffer_size", Kind::master},
        {"ncmpi_inq_nreqs", Kind::requests},
        {"ncmpi_inq_file_info", Kind::master},
        {"ncmpi_get_file_info", Kind::master},
        {"ncmpi_inq_striping", Kind::master},
        {"ncmpi_inq_path", Kind::path_of},
        {"ncmpi_inq_dim", Kind::dimension},
        {"ncmpi_inq_dimlen", Kind::dimension},
        {"ncmpi_inq_var_fill", Kind::fill_of},
        {"ncmpi_inq_put_size", Kind::bytes},
        {"ncmpi_inq_get_size", Kind::bytes},
        {"ncmpi_begin_indep_data", Kind::mode},
        {"ncmpi_end_indep_data", Kind::mode},
        {"ncmpi_sync", Kind::sync},
        {"ncmpi_flush", Kind::sync},
        {"ncmpi_copy_att", Kind::copy},
        {"ncmpi_rename_att", Kind::both},
        {"ncmpi_del_att", Kind::both},
        {"ncmpi_rename_dim", Kind::both},
        {"ncmpi_rename_var", Kind::both},
    };
    return all;
}

}  // namespace

Kind kind_of(std::string_view symbol) {
    const auto known = kinds().find(symbol);
    if (known != kinds().end()) return known->second;
    if (symbol.starts_with("ncmpi_put_att")) return Kind::both;
    if (const auto form = ncsub::parse_call(symbol)) return form->several() ? Kind::several : Kind::access;
    return Kind::logical;
}

}  // namespace ioweir::pnetcdf
