// Whether a new file is divided is found out alike by all ranks, also where these have other environments, hints or names of the file.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdlib>
#include <string>

#include "adapters/pnetcdf/subfile_options.hpp"

namespace ioweir::pnetcdf {
namespace {

class SubfileOptionsOfRanks : public testing::Test {
protected:
    void SetUp() override { PMPI_Comm_rank(MPI_COMM_WORLD, &rank_); }
    void TearDown() override {
        ::unsetenv("PNETCDF_HINTS");
        // None goes on before all have found the same.
        PMPI_Barrier(MPI_COMM_WORLD);
    }
    [[nodiscard]] FoundOptions find(const char* path, MPI_Info info = MPI_INFO_NULL) const {
        return find_subfile_options(plan_, path, MPI_COMM_WORLD, info);
    }
    static void expect_differing(const FoundOptions& found) {
        EXPECT_FALSE(found.options);
        EXPECT_NE(found.problem.find("differ between ranks"), std::string::npos) << found.problem;
    }

    const policy::PlanFile plan_ = policy::parse_plan_file(
                                       "[[file]]\nmatch = \"a.nc\"\nnetcdf = { subfiles = 2 }\n"
                                       "[[file]]\nmatch = \"c.nc\"\nmapping = \"grouped:2\"\n",
                                       "plan")
                                       .take();
    static constexpr const char* four = "nc_subfiling_enabled=true;nc_num_subfiles=4";
    int rank_ = 0;
};

TEST_F(SubfileOptionsOfRanks, AreThoseOfPlanOrEnvironmentWhereAllHaveThem) {
    EXPECT_EQ(find("a.nc").options->subfiles, 2);
    ::setenv("PNETCDF_HINTS", four, 1);
    EXPECT_EQ(find("a.nc").options->subfiles, 2);
    EXPECT_EQ(find("b.nc").options->subfiles, 4);
}

TEST_F(SubfileOptionsOfRanks, AreNoneWhereThePlanMakesAContainer) {
    EXPECT_EQ(find("c.nc").problem, "") << "nobody wants subfiles";
    ::setenv("PNETCDF_HINTS", four, 1);
    const FoundOptions found = find("c.nc");
    EXPECT_FALSE(found.options);
    EXPECT_NE(found.problem.find("'c.nc' divides the bytes of the file already"), std::string::npos) << found.problem;
    EXPECT_FALSE(found.is_only_noted);
    ::setenv("PNETCDF_HINTS", "pnetcdf_subfiling=enable;nc_num_subfiles=4", 1);
    EXPECT_TRUE(find("c.nc").is_only_noted) << "PnetCDF's own hint";
}

TEST_F(SubfileOptionsOfRanks, AreNoneWhereTheEnvironmentsDiffer) {
    if (rank_ == 0) ::setenv("PNETCDF_HINTS", four, 1);
    expect_differing(find("b.nc"));
}

TEST_F(SubfileOptionsOfRanks, AreNoneWhereTheFileHasAnotherNameOnOneRank) {
    expect_differing(find(rank_ == 0 ? "a.nc" : "link.nc"));
}

TEST_F(SubfileOptionsOfRanks, AreNoneWhereTheSameComesFromDifferentPlaces) {
    if (rank_ != 0) ::setenv("PNETCDF_HINTS", "nc_subfiling_enabled=true;nc_num_subfiles=2", 1);
    expect_differing(find(rank_ == 0 ? "a.nc" : "link.nc"));
}

TEST_F(SubfileOptionsOfRanks, AreNotAskedForByAnybody) {
    const FoundOptions found = find("b.nc");
    EXPECT_FALSE(found.options);
    EXPECT_EQ(found.problem, "");
}

}  // namespace
}  // namespace ioweir::pnetcdf
