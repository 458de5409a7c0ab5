// Hints about subfiles, as PNETCDF_HINTS has them.
#include "adapters/pnetcdf/subfile_options.hpp"

#include <gtest/gtest.h>

namespace ioweir::pnetcdf {
namespace {

TEST(SubfileOptions, OnlyWhereItIsEnabled) {
    EXPECT_FALSE(subfile_options_in("").options);
    EXPECT_FALSE(subfile_options_in("nc_num_subfiles=4").options);
    EXPECT_FALSE(subfile_options_in("nc_subfiling_enabled=false;nc_num_subfiles=4").options);
    EXPECT_EQ(subfile_options_in("nc_num_subfiles=x").problem, "") << "nobody wants subfiles";
}

TEST(SubfileOptions, AllNamesOfTheHint) {
    for (const char* name : {"nc_subfiling_enabled=true", "nc_subfililing_enabled=true", "pnetcdf_subfiling=enable"}) {
        const FoundOptions found =
            subfile_options_in(std::string("nc_header_align_size=512;") + name + " ; nc_num_subfiles = 4");
        ASSERT_TRUE(found.options) << name;
        EXPECT_EQ(found.options->subfiles, 4);
    }
}

TEST(SubfileOptions, DimensionsAndLeastNumberOfThem) {
    const FoundOptions found =
        subfile_options_in("nc_subfiling_enabled=true;nc_num_subfiles=8;par_dim_id=2;min_ndims=3");
    ASSERT_TRUE(found.options);
    EXPECT_EQ(found.options->par_dim_id, 2);
    EXPECT_EQ(found.options->min_ndims, 3);
}

TEST(SubfileOptions, WhatCannotBeReadIsSaid) {
    const auto problem = [](const std::string& hints) {
        return subfile_options_in("nc_subfiling_enabled=true;" + hints).problem;
    };
    EXPECT_NE(problem("").find("nc_num_subfiles"), std::string::npos);
    EXPECT_NE(problem("nc_num_subfiles=0").find("'0'"), std::string::npos);
    EXPECT_NE(problem("nc_num_subfiles=4x").find("'4x'"), std::string::npos);
    EXPECT_NE(problem("nc_num_subfiles=4;par_dim_id=z").find("par_dim_id"), std::string::npos);
    EXPECT_NE(problem("nc_num_subfiles=99999999999999999999").find("nc_num_subfiles"), std::string::npos);
}

}  // namespace
}  // namespace ioweir::pnetcdf
