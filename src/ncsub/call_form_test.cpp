// Names of PnetCDF's functions: the places of arguments are those of its header (pnetcdf.h 1.12).
#include "ncsub/call_form.hpp"

#include <gtest/gtest.h>

namespace ioweir::ncsub {
namespace {

TEST(CallForm, NamesOfAccesses) {
    EXPECT_EQ(parse_call("ncmpi_put_vara_double_all"), (CallForm{Verb::put, Access::vara, Element::float64, true}));
    EXPECT_EQ(parse_call("ncmpi_get_var1_longlong"), (CallForm{Verb::get, Access::var1, Element::int64, false}));
    EXPECT_EQ(parse_call("ncmpi_get_var_long"), (CallForm{Verb::get, Access::var, Element::slong, false}));
    EXPECT_EQ(parse_call("ncmpi_put_vars_all"), (CallForm{Verb::put, Access::vars, Element::described, true}));
    EXPECT_EQ(parse_call("ncmpi_iput_varn_uchar"), (CallForm{Verb::iput, Access::varn, Element::uchar, false}));
    EXPECT_EQ(parse_call("ncmpi_bput_varm"), (CallForm{Verb::bput, Access::varm, Element::described, false}));
    EXPECT_EQ(parse_call("ncmpi_put_vard_all"), (CallForm{Verb::put, Access::vard, Element::described, true}));
    EXPECT_EQ(parse_call("ncmpi_mget_vara_ulonglong_all"), (CallForm{Verb::mget, Access::vara, Element::uint64, true}));
}

TEST(CallForm, OtherNames) {
    for (const char* name : {"ncmpi_put_att_text", "ncmpi_get_att", "ncmpi_enddef", "ncmpi_inq_var", "ncmpi_def_var",
                             "nc_put_vara_int", "ncmpi_put_vara_string", "ncmpi_wait_all", "ncmpi_put_variable", ""})
        EXPECT_EQ(parse_call(name), std::nullopt) << name;
}

TEST(CallForm, PlacesOfArguments) {
    // int ncmpi_put_vara_all(int ncid, int varid, start, count, const void* buf, MPI_Offset bufcount, MPI_Datatype buftype)
    const CallForm vara = *parse_call("ncmpi_put_vara_all");
    EXPECT_EQ(vara.start(), 2);
    EXPECT_EQ(vara.count(), 3);
    EXPECT_EQ(vara.stride(), -1);
    EXPECT_EQ(vara.buffer(), 4);
    EXPECT_EQ(vara.buffer_count(), 5);
    EXPECT_EQ(vara.buffer_type(), 6);
    // int ncmpi_get_varm_int_all(int ncid, int varid, start, count, stride, imap, int* op)
    const CallForm varm = *parse_call("ncmpi_get_varm_int_all");
    EXPECT_EQ(varm.map(), 5);
    EXPECT_EQ(varm.buffer(), 6);
    EXPECT_EQ(varm.buffer_type(), -1);
    const CallForm var1 = *parse_call("ncmpi_put_var1_int");
    EXPECT_EQ(var1.start(), 2);
    EXPECT_EQ(var1.count(), -1);
    EXPECT_EQ(var1.buffer(), 3);
    EXPECT_EQ(parse_call("ncmpi_put_var_int")->buffer(), 2);
}

}  // namespace
}  // namespace ioweir::ncsub
