// Masters and subfiles as figure 9 of Son et al. 2016 prints them.
#include "ncsub/plain_names.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "ncsub/logical.hpp"

namespace ioweir::ncsub {
namespace {

/// Figure 9 b: cube(z, y, x) of 100^3 is a scalar.
Header figure_master() {
    Header master;
    master.dimensions = {{"z", 100}, {"y", 100}, {"x", 100}};
    master.attributes = {text_attribute("title", "test"), text_attribute("subfile 0", "test.0"),
                         text_attribute("subfile 1", "test.1")};
    master.variables = {
        {"cube", {}, {int_attribute("num_subfiles", {2}), int_attribute("ndims_org", {3})}, Type::float64, 8, 512}};
    return master;
}

/// Figure 9 c and d; divided along `dimension`.
Header figure_subfile(int number, std::size_t dimension = 0) {
    Header subfile;
    subfile.dimensions = {{"z.cube", 100}, {"y.cube", 100}, {"x.cube", 100}};
    subfile.dimensions[dimension].length = 50;
    subfile.attributes = {int_attribute("subfile_index", {number})};
    const std::string range = std::string("range(") + "zyx"[dimension] + ")";
    subfile.variables = {
        {"cube", {0, 1, 2}, {int_attribute(range, {50 * number, 50 * number + 49})}, Type::float64, 4'000'000, 512}};
    return subfile;
}

Logical must_read(const Header& master, const std::vector<Header>& subfiles) {
    const auto own = with_own_names(master, subfiles, "run/test");
    if (!own) throw std::runtime_error(own.error().message());
    EXPECT_TRUE(is_master(own.value()));
    EXPECT_FALSE(has_plain_names(own.value()));
    auto logical = logical_of(own.value(), "run/test");
    if (!logical) throw std::runtime_error(logical.error().message());
    return logical.take();
}

std::string error_of(const Header& master, const std::vector<Header>& subfiles) {
    const auto own = with_own_names(master, subfiles, "run/test");
    return own ? "no error" : own.error().message();
}

TEST(PlainNames, AreThoseOfTheFigure) {
    ASSERT_TRUE(has_plain_names(figure_master()));
    for (const std::size_t dimension : {0U, 1U, 2U}) {
        const Logical logical =
            must_read(figure_master(), {figure_subfile(0, dimension), figure_subfile(1, dimension)});
        const Division expected{static_cast<int>(dimension), {0, 1, 2}, {0, 50, 100}};
        EXPECT_EQ(logical.divisions, std::vector<std::optional<Division>>{expected});
        EXPECT_EQ(logical.header.variables[0].dimensions, (std::vector<std::int64_t>{0, 1, 2}));
        EXPECT_TRUE(logical.header.variables[0].attributes.empty());
        EXPECT_EQ(logical.header.attributes, std::vector{text_attribute("title", "test")});
        EXPECT_EQ(subfile_path(logical, "run/test", 1), "run/test.1");
        EXPECT_EQ(check_subfile(logical, figure_subfile(1, dimension), 1, "test.1"), std::nullopt);
        // What is written of it later says the same.
        const auto again = logical_of(master_of(logical), "test");
        ASSERT_TRUE(again);
        EXPECT_EQ(again.value().files, (std::vector<std::string>{"test.0", "test.1"}));
        EXPECT_EQ(again.value().divisions, logical.divisions);
    }
}

TEST(PlainNames, OfSubfilesFollowFromTheFilesOwnName) {
    Header master = figure_master();
    master.attributes.clear();
    const auto names = plain_subfiles(master, "run/cube.nc");
    ASSERT_TRUE(names);
    EXPECT_EQ(names.value(), (std::vector<std::string>{"cube.nc.0", "cube.nc.1"}));
}

TEST(PlainNames, OfOtherThingsAreLeftAlone) {
    Header plane = figure_master();
    plane.variables[0].dimensions = {0, 1};  // not a scalar: somebody else's attributes
    EXPECT_FALSE(has_plain_names(plane));
    Header one = figure_master();
    one.variables[0].attributes.pop_back();
    EXPECT_FALSE(has_plain_names(one));
}

TEST(PlainNames, ErrorsSayWhatIsMissing) {
    const std::vector<Header> good{figure_subfile(0), figure_subfile(1)};
    EXPECT_EQ(error_of(figure_master(), good), "no error");
    std::vector<Header> subfiles = good;
    subfiles[1].variables[0].attributes.clear();
    EXPECT_NE(error_of(figure_master(), subfiles).find("variable cube: subfile 1 does not say its range"),
              std::string::npos);
    subfiles = good;
    subfiles[0].variables.clear();
    EXPECT_NE(error_of(figure_master(), subfiles).find("variable cube: subfile 0 does not have it"), std::string::npos);
    subfiles = good;
    subfiles[0].dimensions[2].name = "w.cube";
    EXPECT_NE(error_of(figure_master(), subfiles).find("the file has no dimension w"), std::string::npos);
    Header master = figure_master();
    master.attributes[1] = text_attribute("subfile 0", "../test.0");
    EXPECT_NE(error_of(master, good).find("subfile 0 is no file beside it: '../test.0'"), std::string::npos);
    master = figure_master();
    master.variables[0].attributes[0] = int_attribute("num_subfiles", {-1});
    EXPECT_NE(error_of(master, good).find("num_subfiles is"), std::string::npos);
    // Ranges with a gap are found where the attributes are read.
    subfiles = good;
    subfiles[1].variables[0].attributes = {int_attribute("range(z)", {60, 99})};
    const auto own = with_own_names(figure_master(), subfiles, "test");
    ASSERT_TRUE(own);
    EXPECT_FALSE(logical_of(own.value(), "test"));
}

}  // namespace
}  // namespace ioweir::ncsub
