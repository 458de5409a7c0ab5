// What master and subfiles say of each other: the logical file follows from the master, whoever of the two kinds of writers wrote it, and
// what does not belong together is found.
#include "ncsub/logical.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "ncsub/core/partition.hpp"

namespace ioweir::ncsub {
namespace {

/// Figure 9 of Son et al.: cube(z, y, x) of 100^3 in two subfiles, and a plane that stays whole.
Logical example() {
    Logical logical;
    logical.header.version = 2;
    logical.header.dimensions = {{"z", 100}, {"y", 100}, {"x", 100}};
    logical.header.attributes = {text_attribute("title", "test")};
    logical.header.variables = {{"cube", {0, 1, 2}, {text_attribute("units", "m")}, Type::float64, 8'000'000, 512},
                                {"plane", {1, 2}, {}, Type::int32, 40'000, 8'000'512}};
    logical.divisions = {Division{0, {0, 1, 2}, {0, 50, 100}}, std::nullopt};
    logical.subfiles = 2;
    logical.id = "0123456789abcdef0123456789abcdef";
    return logical;
}

/// Of the numbers of an attribute; empty: there is none.
std::vector<std::int64_t> numbers(const std::vector<Attribute>& attributes, const std::string& name) {
    const Attribute* attribute = find(attributes, name);
    return attribute != nullptr ? integers_of(*attribute) : std::vector<std::int64_t>{};
}

using Numbers = std::vector<std::int64_t>;

TEST(Logical, MasterAsPnetcdfWritesIt) {
    const Header master = master_of(example());
    EXPECT_EQ(numbers(master.attributes, "_PnetCDF_SubFiling.num_subfiles"), Numbers{2});
    ASSERT_EQ(master.variables.size(), 2U);
    const Variable& cube = master.variables[0];
    EXPECT_TRUE(cube.dimensions.empty());
    EXPECT_EQ(cube.attributes.front().name, "units");
    EXPECT_EQ(numbers(cube.attributes, "_PnetCDF_SubFiling.par_dim_index"), Numbers{0});
    EXPECT_EQ(numbers(cube.attributes, "_PnetCDF_SubFiling.ndims_org"), Numbers{3});
    EXPECT_EQ(numbers(cube.attributes, "_PnetCDF_SubFiling.dimids_org"), (Numbers{0, 1, 2}));
    EXPECT_EQ(numbers(cube.attributes, "_PnetCDF_SubFiling.num_subfiles"), Numbers{2});
    EXPECT_EQ(numbers(cube.attributes, "_PnetCDF_SubFiling.range(z).subfile.0"), (Numbers{0, 49}));
    EXPECT_EQ(numbers(cube.attributes, "_PnetCDF_SubFiling.range(z).subfile.1"), (Numbers{50, 99}));
    EXPECT_EQ(numbers(cube.attributes, "_PnetCDF_SubFiling.range(x).subfile.1"), (Numbers{0, 99}));
    EXPECT_EQ(master.variables[1].dimensions, (Numbers{1, 2})) << "the plane stays whole";
    EXPECT_TRUE(master.variables[1].attributes.empty());
    EXPECT_TRUE(is_master(master));
    EXPECT_FALSE(is_master(example().header));
}

TEST(Logical, SubfilesAsPnetcdfWritesThem) {
    const Header subfile = subfile_of(example(), 1);
    EXPECT_EQ(subfile.version, 2);
    EXPECT_EQ(subfile.dimensions, (std::vector<Dimension>{{"z.cube", 50}, {"y.cube", 100}, {"x.cube", 100}}));
    ASSERT_EQ(subfile.variables.size(), 1U);
    const Variable& cube = subfile.variables[0];
    EXPECT_EQ(cube.name, "cube");
    EXPECT_EQ(cube.type, Type::float64);
    EXPECT_EQ(numbers(cube.attributes, "_PnetCDF_SubFiling.subfile_index"), Numbers{1});
    EXPECT_EQ(numbers(cube.attributes, "_PnetCDF_SubFiling.range(z).subfile.1"), (Numbers{50, 99}));
    EXPECT_EQ(subfile_path("run/test.nc", 1), "run/test.nc.subfile_1.nc");
}

TEST(Logical, RecordsHaveOneDimensionInASubfile) {
    Logical logical = example();
    logical.header.dimensions.push_back({"t", 0});
    logical.header.variables = {{"time", {3}, {}, Type::float64, 8, 512},
                                {"u", {3, 0, 2}, {}, Type::float32, 40'000, 520},
                                {"v", {3, 0}, {}, Type::float32, 400, 40'520}};
    logical.divisions = {std::nullopt, Division{1, {3, 0, 2}, {0, 50, 100}}, Division{1, {3, 0}, {0, 50, 100}}};
    const Header subfile = subfile_of(logical, 1);
    EXPECT_EQ(subfile.dimensions, (std::vector<Dimension>{{"t.u", 0}, {"z.u", 50}, {"x.u", 100}, {"z.v", 50}}));
    ASSERT_EQ(subfile.variables.size(), 2U);
    EXPECT_EQ(subfile.variables[0].dimensions, (Numbers{0, 1, 2}));
    EXPECT_EQ(subfile.variables[1].dimensions, (Numbers{0, 3}));
    EXPECT_FALSE(check_subfile(logical, subfile, 1, "t.nc.subfile_1.nc"));
    const Header master = master_of(logical);
    EXPECT_EQ(master.variables[0].dimensions, Numbers{3});
    EXPECT_TRUE(master.variables[1].dimensions.empty());
    const auto back = logical_of(master, "t.nc");
    ASSERT_TRUE(back.ok()) << back.error().message();
    EXPECT_EQ(back.value().divisions, logical.divisions);
}

TEST(Logical, RangesBeyond32BitsAreInOurAttributesOnly) {
    Logical logical = example();
    logical.header.version = 5;
    logical.header.dimensions[0].length = 5'000'000'000;
    logical.divisions[0]->boundaries = {0, 2'500'000'000, 5'000'000'000};
    const Header master = master_of(logical);
    EXPECT_EQ(find(master.variables[0].attributes, "_PnetCDF_SubFiling.range(z).subfile.1"), nullptr);
    const auto back = logical_of(master, "t.nc");
    ASSERT_TRUE(back.ok()) << back.error().message();
    EXPECT_EQ(back.value().divisions[0]->boundaries, (Numbers{0, 2'500'000'000, 5'000'000'000}));
}

TEST(Logical, ADimensionTwice) {
    Logical logical = example();
    logical.header.variables[0].dimensions = {1, 0, 0};
    logical.header.variables[0].vsize = 8'000'000;
    logical.divisions[0] = Division{2, {1, 0, 0}, {0, 30, 100}};
    const Header master = master_of(logical);
    EXPECT_EQ(numbers(master.variables[0].attributes, "_PnetCDF_SubFiling.range(z).subfile.1"), (Numbers{30, 99}));
    EXPECT_EQ(subfile_of(logical, 1).dimensions,
              (std::vector<Dimension>{{"y.cube", 100}, {"d1.v0", 100}, {"z.cube", 70}}));
    const auto back = logical_of(master, "t.nc");
    ASSERT_TRUE(back.ok()) << back.error().message();
    EXPECT_EQ(back.value().divisions, logical.divisions);
}

TEST(Logical, NamesThatGetTooLong) {
    Logical logical = example();
    logical.header.dimensions[1].name = std::string(254, 'y');
    const Header subfile = subfile_of(logical, 0);
    EXPECT_EQ(subfile.dimensions[1].name, "d1.v0");
    const Header master = master_of(logical);
    for (const Attribute& attribute : master.variables[0].attributes) EXPECT_LE(attribute.name.size(), 256U);
    const auto back = logical_of(master_of(logical), "t.nc");
    ASSERT_TRUE(back.ok()) << back.error().message();
    EXPECT_EQ(back.value().divisions, logical.divisions);
}

Logical random_logical() {
    Logical logical;
    logical.header.version = *rc::gen::element(1, 2, 5);
    logical.header.records = *rc::gen::inRange<std::int64_t>(0, 5);
    logical.header.dimensions = {{"t", 0}};
    const int dimensions = *rc::gen::inRange(1, 5);
    for (int i = 0; i < dimensions; ++i)
        logical.header.dimensions.push_back({"d" + std::to_string(i), *rc::gen::inRange<std::int64_t>(1, 12)});
    logical.subfiles = *rc::gen::inRange<std::int64_t>(1, 7);
    logical.id = "an id";
    const int variables = *rc::gen::inRange(0, 5);
    std::int64_t begin = 512;
    for (int i = 0; i < variables; ++i) {
        Variable variable;
        variable.name = "v" + std::to_string(i);
        variable.type = static_cast<Type>(*rc::gen::inRange(1, logical.header.version == 5 ? 12 : 7));
        Shape shape;
        shape.record = *rc::gen::arbitrary<bool>();
        if (shape.record) variable.dimensions.push_back(0);
        const int n = *rc::gen::inRange(0, 4);
        for (int d = 0; d < n; ++d) variable.dimensions.push_back(*rc::gen::inRange<std::int64_t>(1, dimensions + 1));
        std::int64_t bytes = bytes_of(variable.type);
        for (const std::int64_t id : variable.dimensions) {
            const std::int64_t length = logical.header.dimensions[static_cast<std::size_t>(id)].length;
            shape.lengths.push_back(length);
            shape.dimension_ids.push_back(static_cast<int>(id));
            if (length > 0) bytes *= length;
        }
        variable.vsize = (bytes + 3) / 4 * 4;
        variable.begin = begin;
        begin += variable.vsize;
        if (*rc::gen::arbitrary<bool>()) variable.attributes.push_back(text_attribute("units", "K"));
        if (*rc::gen::arbitrary<bool>())
            variable.attributes.push_back(int_attribute("_PnetCDF_SubFiling.par_dim_id", {1}));
        const Choice choice = choose_dimension(shape, {logical.subfiles});
        std::optional<Division> division;
        if (choice.dimension >= 0)
            division =
                Division{choice.dimension, variable.dimensions,
                         boundaries_of(shape.lengths[static_cast<std::size_t>(choice.dimension)], logical.subfiles)};
        logical.divisions.push_back(division);
        logical.header.variables.push_back(std::move(variable));
    }
    return logical;
}

/// What the library fills in where a master is defined: sizes and places of its own.
Header written(Header header) {
    std::int64_t begin = 4096;
    for (Variable& variable : header.variables) {
        variable.vsize = 8;
        variable.begin = begin += 8;
    }
    return header;
}

/// The sizes of variables that lie in the master are its own.
Logical with_sizes_of(Logical logical, const Header& master) {
    for (std::size_t i = 0; i < logical.divisions.size(); ++i)
        if (!logical.divisions[i]) logical.header.variables[i].vsize = master.variables[i].vsize;
    return logical;
}

RC_GTEST_PROP(Logical, FollowsFromTheMastersBytes, ()) {
    const Logical logical = random_logical();
    const Header master = written(master_of(logical));
    const auto decoded = decode(encode(master), "t.nc");
    RC_ASSERT(decoded.ok());
    const auto back = logical_of(decoded.value().header, "t.nc");
    RC_ASSERT(back.ok());
    RC_ASSERT(back.value() == with_sizes_of(logical, master));
    for (std::int64_t number = 0; number < logical.subfiles; ++number) {
        const auto subfile = decode(encode(subfile_of(logical, number)), "t.nc.subfile_0.nc");
        RC_ASSERT(subfile.ok());
        RC_ASSERT(!check_subfile(back.value(), subfile.value().header, number, "t.nc.subfile_0.nc"));
        for (std::int64_t other = 0; other < logical.subfiles; ++other) {
            if (other == number) continue;
            const auto problem = check_subfile(back.value(), subfile.value().header, other, "swapped.nc");
            RC_ASSERT(problem.has_value());
            RC_ASSERT(problem->message().find("swapped.nc") != std::string::npos);
        }
    }
}

RC_GTEST_PROP(Logical, FilesOfPnetcdfHaveNoAttributesOfOurs, ()) {
    const Logical logical = random_logical();
    Header master = written(master_of(logical));
    const auto is_ours = [](const Attribute& attribute) { return attribute.name.starts_with("_ioweir."); };
    std::erase_if(master.attributes, is_ours);
    for (Variable& variable : master.variables) std::erase_if(variable.attributes, is_ours);
    const auto back = logical_of(master, "t.nc");
    RC_ASSERT(back.ok());
    RC_ASSERT(back.value().divisions == logical.divisions);
    // Places are chosen: behind the header, one behind the other, records last.
    auto at = static_cast<std::int64_t>(encode(back.value().header).size());
    for (const bool records : {false, true})
        for (const Variable& variable : back.value().header.variables) {
            if (back.value().header.is_record(variable) != records) continue;
            RC_ASSERT(variable.begin == at);
            at += variable.vsize;
        }
}

RC_GTEST_PROP(Logical, AMissingAttributeIsAnErrorOrChangesNothing, ()) {
    Logical logical = random_logical();
    const bool divided =
        std::any_of(logical.divisions.begin(), logical.divisions.end(), [](const auto& d) { return d.has_value(); });
    if (!divided) logical = example();
    Header master = written(master_of(logical));
    std::vector<std::pair<std::size_t, std::size_t>> own;  // variable, attribute
    for (std::size_t v = 0; v < master.variables.size(); ++v)
        for (std::size_t a = 0; a < master.variables[v].attributes.size(); ++a)
            if (says_division(master.variables[v].attributes[a].name)) own.emplace_back(v, a);
    RC_ASSERT(!own.empty());
    const auto [v, a] = own[*rc::gen::inRange<std::size_t>(0, own.size())];
    auto& attributes = master.variables[v].attributes;
    const std::string name = attributes[a].name;
    attributes.erase(attributes.begin() + static_cast<std::ptrdiff_t>(a));
    const auto back = logical_of(master, "t.nc");
    // Ranges stand there twice, and dimids_org is what a divided variable is known by.
    const bool twice = name.find(".range(") != std::string::npos || name == "_ioweir.boundaries";
    if (name == "_PnetCDF_SubFiling.dimids_org") return;
    RC_ASSERT(back.ok() == twice);
    if (back.ok()) {
        RC_ASSERT(back.value().divisions == logical.divisions);
    } else {
        RC_ASSERT(back.error().message().find(master.variables[v].name) != std::string::npos);
    }
}

TEST(Logical, ContradictionsAreErrorsThatSayWhere) {
    const auto expect = [](const std::function<void(Header&)>& change, const std::string& words) {
        Header master = written(master_of(example()));
        change(master);
        const auto back = logical_of(master, "t.nc");
        ASSERT_FALSE(back.ok()) << words;
        EXPECT_NE(back.error().message().find(words), std::string::npos) << back.error().message();
        EXPECT_NE(back.error().message().find("t.nc"), std::string::npos) << back.error().message();
    };
    const auto set = [](const std::string& name, const std::vector<std::int32_t>& values) {
        return [=](Header& master) {
            for (Attribute& attribute : master.variables[0].attributes)
                if (attribute.name == name) attribute = int_attribute(name, values);
        };
    };
    expect(set("_PnetCDF_SubFiling.dimids_org", {0, 1, 9}), "no dimension 9");
    expect(set("_PnetCDF_SubFiling.ndims_org", {2}), "ndims_org is not 3");
    expect(set("_PnetCDF_SubFiling.par_dim_index", {3}), "par_dim_index");
    expect(set("_PnetCDF_SubFiling.num_subfiles", {0}), "num_subfiles");
    expect(set("_PnetCDF_SubFiling.num_subfiles", {3}), "3 parts");
    expect([](Header& master) { master.dimensions[0].length = 90; }, "0 to 90");
    expect([](Header& master) { master.variables[0].dimensions = {0}; }, "dimensions of its own");
    expect([](Header& master) { master.variables.pop_back(); }, "begins has 2");
}

TEST(Logical, SubfilesThatDoNotBelong) {
    const Logical logical = example();
    const auto problem = [&](const std::function<void(Header&)>& change) {
        Header subfile = subfile_of(logical, 1);
        change(subfile);
        const auto found = check_subfile(logical, subfile, 1, "t.nc.subfile_1.nc");
        return found ? found->message() : "";
    };
    EXPECT_EQ(problem([](Header&) {}), "");
    EXPECT_NE(problem([](Header& subfile) { subfile.attributes[0].bytes[0] = 'x'; }), "") << "of another file";
    EXPECT_NE(problem([](Header& subfile) { subfile.attributes.clear(); }), "");
    EXPECT_NE(problem([](Header& subfile) { subfile.dimensions[0].length = 49; }), "");
    EXPECT_NE(problem([](Header& subfile) { subfile.variables[0].type = Type::int32; }), "");
    EXPECT_NE(problem([](Header& subfile) { subfile.variables.clear(); }), "");
}

}  // namespace
}  // namespace ioweir::ncsub
