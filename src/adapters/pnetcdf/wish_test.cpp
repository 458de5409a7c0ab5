// Hints about subfiles, as PNETCDF_HINTS has them.
#include "adapters/pnetcdf/wish.hpp"

#include <gtest/gtest.h>

namespace ioweir::pnetcdf {
namespace {

TEST(Wish, OnlyWhereItIsEnabled) {
    EXPECT_FALSE(wish_in("").wish);
    EXPECT_FALSE(wish_in("nc_num_subfiles=4").wish);
    EXPECT_FALSE(wish_in("nc_subfiling_enabled=false;nc_num_subfiles=4").wish);
    EXPECT_EQ(wish_in("nc_num_subfiles=x").problem, "") << "nobody wants subfiles";
}

TEST(Wish, AllNamesOfTheHint) {
    for (const char* name : {"nc_subfiling_enabled=true", "nc_subfililing_enabled=true", "pnetcdf_subfiling=enable"}) {
        const Wished wished = wish_in(std::string("nc_header_align_size=512;") + name + " ; nc_num_subfiles = 4");
        ASSERT_TRUE(wished.wish) << name;
        EXPECT_EQ(wished.wish->subfiles, 4);
    }
}

TEST(Wish, DimensionsAndLeastNumberOfThem) {
    const Wished wished = wish_in("nc_subfiling_enabled=true;nc_num_subfiles=8;par_dim_id=2;min_ndims=3");
    ASSERT_TRUE(wished.wish);
    EXPECT_EQ(wished.wish->par_dim_id, 2);
    EXPECT_EQ(wished.wish->min_ndims, 3);
}

TEST(Wish, WhatCannotBeReadIsSaid) {
    const auto problem = [](const std::string& hints) { return wish_in("nc_subfiling_enabled=true;" + hints).problem; };
    EXPECT_NE(problem("").find("nc_num_subfiles"), std::string::npos);
    EXPECT_NE(problem("nc_num_subfiles=0").find("'0'"), std::string::npos);
    EXPECT_NE(problem("nc_num_subfiles=4x").find("'4x'"), std::string::npos);
    EXPECT_NE(problem("nc_num_subfiles=4;par_dim_id=z").find("par_dim_id"), std::string::npos);
    EXPECT_NE(problem("nc_num_subfiles=99999999999999999999").find("nc_num_subfiles"), std::string::npos);
}

}  // namespace
}  // namespace ioweir::pnetcdf
